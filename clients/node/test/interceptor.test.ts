import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { after, afterEach, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { Client, type Settings } from "../src/index.js";
import { FakeRetryd } from "./fake-retryd.js";
import { type Json, type Testbed, startTestbed } from "./testbed.js";

const OPERATION = "payments.v1.Payments/Charge";
const DONE = Buffer.from([0x0a, 4, ...Buffer.from("done")]);

let testbed: Testbed;
let client: Client;
let service: grpc.Client;
before(async () => void (testbed = await startTestbed()));
after(async () => testbed.stop());
afterEach(async () => {
  service.close();
  await client.close();
});

describe("the interceptor", () => {
  for (const [place, message] of [
    "Stream refused by server",
    "Connection dropped",
    "Name resolution failed for target dns:nowhere",
    "No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:1",
  ].entries()) {
    for (const headers_first of [false, true]) {
      test(`believes no server that says "${message}"${headers_first ? " after headers" : ""}`, async () => {
        const run = `spoof-${place}-${headers_first}`;
        connect(run);
        await assert.rejects(call(run, [{ grpc: 14, message, headers_first }]), {
          code: 14,
          details: message,
        });
        const context = await asked(run);
        assert.equal(context["failure"].category, "FAILURE_CATEGORY_STATUS");
        assert.equal(context["evidence"], undefined);
      });
    }
  }

  test("proves nothing through another interceptor, which may say anything", async () => {
    const other: grpc.Interceptor = (options, next) => new grpc.InterceptingCall(next(options));
    connect("covered", {}, [other]);
    await assert.rejects(call("covered", [{ refuse: true }]), { code: 14 });
    const context = await asked("covered");
    assert.equal(context["failure"].category, "FAILURE_CATEGORY_STATUS");
    assert.equal(context["evidence"], undefined);
  });

  test("shows the application only the attempt that ends the call", async () => {
    connect("seen", { operations: { [OPERATION]: { declared: true } } });
    const seen: string[] = [];
    const script = [{ grpc: 14, headers_first: true }, { ok: true }];
    const answer = call("seen", script, {}, (under) => {
      under.on("metadata", () => seen.push("metadata"));
      under.on("status", ({ code }) => seen.push(`status ${code}`));
    });
    assert.deepEqual(await answer, DONE);
    assert.deepEqual(seen, ["metadata", "status 0"]);
  });

  test("leaves streams alone", async () => {
    connect("stream", { operations: { [OPERATION]: { declared: true } } });
    const [path, to, from] = ["/" + OPERATION, (it: Buffer) => it, (it: Buffer) => it];
    const metadata = headers("stream", [{ grpc: 14 }, { ok: true }]);
    const stream = service.makeServerStreamRequest(path, to, from, Buffer.alloc(0), metadata);
    stream.resume();
    const [error] = await once(stream, "error");
    assert.equal(error.code, 14);
    const { arrivals, questions } = await testbed.play("stream");
    assert.deepEqual([arrivals.length, questions.length], [1, 0]);
  });

  test("returns a cancelled call while retryd is still asked, and gives back a late grant", async () => {
    const retryd = new FakeRetryd();
    connect("late", { target: await retryd.start(), askTimeoutMs: 10_000 });
    const cancel = (under: grpc.ClientUnaryCall) => void retryd.asked.then(() => under.cancel());
    await assert.rejects(call("late", [{ grpc: 14 }], {}, cancel), { code: grpc.status.CANCELLED });
    retryd.answer();
    await client.close();
    assert.deepEqual(
      retryd.released.map(({ unused, grant }) => [unused, grant.case]),
      [[1, "decided"]],
    );
    retryd.stop();
  });

  test("sends in every attempt what the application gave at first", async () => {
    const retryd = new FakeRetryd(0n);
    connect("reused", { target: await retryd.start(), askTimeoutMs: 10_000 });
    const metadata = headers("reused", [{ grpc: 14 }, { ok: true }]);
    metadata.set("idempotency-key", "k1");
    let serialized = 0;
    const [path, from] = ["/" + OPERATION, (it: Buffer) => it];
    const to = (it: Buffer) => {
      serialized += 1;
      return it;
    };
    const answer = new Promise((resolve, reject) =>
      service.makeUnaryRequest(path, to, from, Buffer.alloc(0), metadata, (error, done) =>
        error ? reject(error) : resolve(done),
      ),
    );
    await retryd.asked;
    metadata.set("idempotency-key", "k2");
    retryd.answer();
    assert.deepEqual(await answer, DONE);
    assert.equal(serialized, 1);
    const { arrivals } = await testbed.play("reused");
    assert.deepEqual(
      arrivals.map((it: Json) => it["headers"]["idempotency-key"]),
      ["k1", "k1"],
    );
    retryd.stop();
  });

  test("no longer listens to the call that it serves when its own is over", async () => {
    connect("left");
    const parent = Object.assign(new EventEmitter(), { getDeadline: () => Infinity });
    const options = { parent } as unknown as grpc.CallOptions;
    await call("left", [{ ok: true }], options);
    const listeners = parent.listeners("cancelled").map(String);
    assert.deepEqual(
      listeners.filter((it) => !it.includes("'Cancelled by parent call'")),
      [],
      "only grpc-js's own remain",
    );
  });

  test("goes by the deadline of the call that it serves, and ends with it", async () => {
    connect("served", { operations: { [OPERATION]: { declared: true } } });
    const parent = Object.assign(new EventEmitter(), { getDeadline: () => Date.now() + 60_000 });
    const cancel = () => void setTimeout(() => parent.emit("cancelled"), 300);
    const options = { parent } as unknown as grpc.CallOptions;
    const script = [{ grpc: 14, pushback: "30000" }];
    await assert.rejects(call("served", script, options, cancel), { code: grpc.status.CANCELLED });
    assert.match((await asked("served"))["remainingDeadline"], /^(59|60)(\.\d+)?s$/);
  });

  test("never makes a call fail by itself", async () => {
    const ownRules = () => {
      throw new Error("own rules are broken");
    };
    connect("broken", { ownRules });
    const warned = once(process, "warning");
    const charge = () => call("broken", [{ grpc: 14 }]);
    await assert.rejects(client.with({ operation: "observed" }, charge), { code: 14 });
    assert.match(String((await warned)[0]), /own rules are broken/);
  });

  test("counts every one of many calls at once", async () => {
    connect("many", { operations: { [OPERATION]: { declared: true } } });
    const calls = Array.from({ length: 200 }, () => call("many", [{ ok: true }]));
    await Promise.all(calls);
    await client.close();
    const { usage } = await testbed.play("many");
    assert.deepEqual([usage["requests"], usage["firstTrySuccesses"]], ["200", "200"]);
  });
});

function connect(
  tenant: string,
  settings: Partial<Settings> = {},
  beneath: grpc.Interceptor[] = [],
) {
  client = new Client({
    target: testbed.retryd["asked"]!,
    tenant,
    askTimeoutMs: 5000,
    ...settings,
  });
  service = new grpc.Client(testbed.grpc["faulty"]!, grpc.credentials.createInsecure(), {
    interceptors: [client.interceptor(), ...beneath],
    "grpc.use_local_subchannel_pool": 1,
  });
}

function call(
  run: string,
  script: Json[],
  options: grpc.CallOptions = {},
  watch: (under: grpc.ClientUnaryCall) => void = () => {},
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const [path, to, from] = ["/" + OPERATION, (it: Buffer) => it, (it: Buffer) => it];
    const end = (error: grpc.ServiceError | null, answer?: Buffer) =>
      error ? reject(error) : resolve(answer!);
    watch(
      service.makeUnaryRequest(path, to, from, Buffer.alloc(0), headers(run, script), options, end),
    );
  });
}

function headers(run: string, script: Json[]): grpc.Metadata {
  const metadata = new grpc.Metadata();
  metadata.set("x-play", run);
  metadata.set("x-script", JSON.stringify(script));
  return metadata;
}

/** What the first question of a run said. */
async function asked(run: string): Promise<Json> {
  const [question] = (await testbed.play(run)).questions;
  assert.ok(question, "nothing was asked");
  return question.context;
}
