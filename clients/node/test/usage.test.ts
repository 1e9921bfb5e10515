import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { toJson } from "@bufbuild/protobuf";
import { FailureClass, UsageSchema } from "../gen/retryd/v1/retryd_pb.js";
import { fromDuration } from "../src/time.js";
import { type Taken, Usage } from "../src/usage.js";

describe("usage", () => {
  test("counts by tenant and operation, and by the class of the last Decision", () => {
    const usage = new Usage();
    usage.callStarted("a", "op");
    usage.callStarted("a", "op");
    usage.firstTrySucceeded("a", "op");
    usage.retrySucceeded("a", "op", FailureClass.TRANSIENT);
    usage.retrySucceeded("a", "op", FailureClass.THROTTLING);
    usage.retrySucceeded("a", "op", FailureClass.TIMEOUT);
    usage.retrySucceeded("a", "op");
    usage.callStarted("b", "op");
    assert.deepEqual(counted(usage.take("a", "op")), {
      requests: "2",
      firstTrySuccesses: "1",
      retriedSuccesses: "4",
      retriedTransient: "1",
      retriedThrottling: "1",
      retriedTimeout: "1",
    });
    assert.deepEqual(counted(usage.take("b", "op")), { requests: "1" });
  });

  test("is taken once", () => {
    const usage = new Usage();
    usage.callStarted("a", "op");
    assert.notEqual(usage.take("a", "op"), undefined);
    assert.equal(usage.take("a", "op"), undefined);
    assert.deepEqual(usage.takeAll(), []);
  });

  test("that is kept adds up, with the time since its counting began", async () => {
    const usage = new Usage();
    usage.callStarted("a", "op");
    const taken = usage.take("a", "op")!;
    await delay(60);
    usage.callStarted("a", "op");
    taken.keep();
    const both = usage.take("a", "op")!;
    assert.deepEqual(counted(both), { requests: "2" });
    assert.ok(50 <= fromDuration(both.message.usage!.period));
  });

  test("has a period that is never zero", () => {
    const usage = new Usage();
    usage.callStarted("a", "op");
    assert.ok(1 <= fromDuration(usage.take("a", "op")!.message.usage!.period));
  });

  test("is not counted under a name that retryd refuses", () => {
    const usage = new Usage();
    for (const name of ["", "n".repeat(257), "\n", "\x9f"]) {
      usage.callStarted("a", name);
      usage.callStarted(name, "op");
    }
    assert.deepEqual(usage.takeAll(), []);
    usage.callStarted("t".repeat(128), "ü".repeat(128));
    assert.equal(usage.takeAll().length, 1);
  });

  test("is kept for 10 000 names, and not for further ones", () => {
    const usage = new Usage();
    for (let number = 0; number < 10_001; number += 1) {
      usage.callStarted("a", String(number));
    }
    assert.equal(usage.take("a", "10000"), undefined);
    assert.deepEqual(counted(usage.take("a", "9999")), { requests: "1" });
    assert.equal(usage.takeAll().length, 9_999);
  });
});

function counted(taken: Taken | undefined) {
  assert.ok(taken);
  const { period: _, ...counts } = toJson(UsageSchema, taken.message.usage!) as object & {
    period?: string;
  };
  return counts;
}
