import { setTimeout as delay } from "node:timers/promises";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { repeatedFetch } from "../src/fetch.js";
import { interceptor } from "../src/interceptor.js";
import { Kit } from "../src/kit.js";
import * as overrides from "../src/overrides.js";
import { type Settings, checked } from "../src/settings.js";
import type { Json, Play, Testbed } from "./testbed.js";

export interface Scenario {
  name: string;
  over: ("grpc" | "http")[];
  retryd?: string;
  target?: string;
  call?: Json;
  script: Json[];
  expect?: Json;
}

/** What came of a call: how it ended, and what was seen of it. */
export interface Played extends Play {
  outcome: "ok" | { grpc: number } | { http: number } | "failed";
  attempts: number;
  tookMs: number;
}

interface Request {
  address: string;
  headers: Record<string, string>;
  call: Json;
  kit: Kit;
  sent(): void;
}

/** Plays one call through one adapter, from the kit's making to its close. */
export async function play(
  testbed: Testbed,
  over: "grpc" | "http",
  scenario: Scenario,
  run: string,
): Promise<Played> {
  const { call = {}, retryd = "asked", target = "faulty", script } = scenario;
  const kit = new Kit(checked(settings(testbed.retryd[retryd]!, run, retryd, call)));
  kit.draining = call["draining"] ?? false;
  const lease = kit.lease(run, operation(call) ?? "");
  while (lease?.left === 0) {
    lease.renew();
    await delay(20);
  }
  const headers = {
    "x-play": run,
    "x-script": JSON.stringify(script),
    ...(call["key"] && { "idempotency-key": call["key"] }),
  };
  let attempts = 0;
  const sent = () => void (attempts += 1);
  const address = testbed[over][target]!.replace(
    "127.0.0.1",
    target === "closed" ? ownLoopback() : "127.0.0.1",
  );
  const request = { address, headers, call, kit, sent };
  const startedMs = performance.now();
  const outcome = await overrides.run(own(call), () =>
    over === "grpc" ? callGrpc(request) : callHttp(request),
  );
  const tookMs = performance.now() - startedMs;
  await kit.close();
  return { outcome, attempts, tookMs, ...(await testbed.play(run)) };
}

let loopbacks = 1;

/** Nobody listens there either; and a target of its own has a throttle that no other call has emptied. */
function ownLoopback(): string {
  loopbacks += 1;
  return `127.0.0.${loopbacks}`;
}

function settings(target: string, tenant: string, retryd: string, call: Json): Settings {
  const askTimeoutMs = call["ask_timeout_ms"] ?? (retryd === "asked" ? 5000 : undefined);
  return {
    target,
    tenant,
    ...(askTimeoutMs && { askTimeoutMs }),
    ...(call["attempt_timeout_ms"] && { attemptTimeoutMs: call["attempt_timeout_ms"] }),
    ...(call["own_rules_ms"] && { ownRules: () => call["own_rules_ms"] }),
    fallback: call["fallback"] ?? true,
    // Nothing but `close` reports, so that the sum does not depend on the time.
    reportEveryMs: 10_000,
    operations: {
      [operation(call) ?? "unused"]: {
        declared: call["declared"] ?? false,
        ...(call["key_header"] && { keyHeader: call["key_header"] }),
        ...(call["lease"] && { lease: call["lease"] }),
      },
    },
  };
}

/** Undefined if the call itself sets none. */
function operation(call: Json): string | undefined {
  return call["operation"] === null
    ? undefined
    : (call["operation"] ?? "payments.v1.Payments/Charge");
}

function own(call: Json) {
  const timeout = call["timeout_ms"] && { timeoutMs: call["timeout_ms"] };
  const name = operation(call);
  return { ...(name && { operation: name }), ...timeout };
}

async function callGrpc({ address, headers, call, kit, sent }: Request) {
  const repeating = interceptor(kit);
  const counted: grpc.Interceptor = (options, next) =>
    repeating(options, (attempt) => (sent(), next(attempt)));
  const service = new grpc.Client(address, grpc.credentials.createInsecure(), {
    interceptors: [counted],
    "grpc.use_local_subchannel_pool": 1,
  });
  const metadata = new grpc.Metadata();
  Object.entries(headers).forEach(([name, value]) => metadata.set(name, value));
  const deadline = call["timeout_ms"] ? Date.now() + call["timeout_ms"] : Infinity;
  try {
    return await new Promise<Played["outcome"]>((resolve) => {
      const under = service.makeUnaryRequest(
        "/payments.v1.Payments/Charge",
        (value: string) =>
          Buffer.from(toBinary(StringValueSchema, create(StringValueSchema, { value }))),
        (bytes) => fromBinary(StringValueSchema, bytes).value,
        "please",
        metadata,
        { deadline },
        (error, answer) =>
          resolve(error ? { grpc: error.code } : answer === "done" ? "ok" : "failed"),
      );
      if (call["cancel_after_ms"]) {
        setTimeout(() => under.cancel(), call["cancel_after_ms"]);
      }
    });
  } finally {
    service.close();
  }
}

async function callHttp({ address, headers, call, kit, sent }: Request) {
  const fetch = repeatedFetch(kit, (input, init) => (sent(), globalThis.fetch(input, init)));
  const body = call["body"] === "stream" ? new Blob(["please"]).stream() : "please";
  const caller = new AbortController();
  if (call["cancel_after_ms"]) {
    setTimeout(() => caller.abort(), call["cancel_after_ms"]);
  }
  const init = { method: "POST", headers, body, signal: caller.signal, duplex: "half" };
  try {
    const response = await fetch(`${address}/payments/4711`, init as RequestInit);
    const text = await response.text();
    return response.ok && text === "done" ? "ok" : { http: response.status };
  } catch {
    return "failed";
  }
}
