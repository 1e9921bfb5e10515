// Calls Decide at a fixed rate until standard input ends: `caller.mjs [--wait-for-ready] ADDRESS RATE`. Prints
// `calling` when it has had its first answer, and a tally at the end.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

// What the kit in clients/node is built with, and the stubs that were generated for it.
const kit = new URL("../../../../clients/node/", import.meta.url);
const require = createRequire(kit);
const grpc = require("@grpc/grpc-js");
const { create, fromBinary, toBinary } = await import(require.resolve("@bufbuild/protobuf"));
const { DecisionSchema, RetryContextSchema } = await import(
  fileURLToPath(new URL("dist/gen/retryd/v1/retryd_pb.js", kit))
);

const DEADLINE_MS = 30_000;
const [address, rate] = process.argv.slice(-2);
const client = new grpc.Client(address, grpc.credentials.createInsecure());
const question = create(RetryContextSchema, {
  tenant: "rollout",
  operation: "node",
  attemptsMade: 1,
  bodyReplayable: true,
  failure: { status: { case: "grpcCode", value: grpc.status.RESOURCE_EXHAUSTED } },
});

/** Resolves to what failed, if anything did. */
function decide() {
  const metadata = new grpc.Metadata({ waitForReady: process.argv.includes("--wait-for-ready") });
  const began_ms = Date.now();
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      "/retryd.v1.RetryService/Decide",
      (message) => Buffer.from(toBinary(RetryContextSchema, message)),
      (bytes) => fromBinary(DecisionSchema, bytes),
      question,
      metadata,
      { deadline: Date.now() + DEADLINE_MS },
      (error) =>
        resolve(
          error && {
            text: `${grpc.status[error.code]}: ${error.details}`,
            began_ms,
            ended_ms: Date.now(),
          },
        ),
    );
  });
}

const first = await decide();
if (first) throw new Error(first.text);
console.log("calling");

const calls = [];
const timer = setInterval(() => calls.push(decide()), 1000 / Number(rate));
for await (const _ of process.stdin);
clearInterval(timer);
const failed = (await Promise.all(calls)).filter(Boolean);
client.close();
console.log(JSON.stringify({ calls: calls.length, failed }));
