import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromJson } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { RetryContextSchema } from "../gen/retryd/v1/retryd_pb.js";
import { Throttle, Throttles } from "../src/throttle.js";
import { counts, isAbsence, unaskedWaitMs } from "../src/unasked.js";
import { type Json, readJson } from "./testbed.js";

const unasked = readJson("clients/scenarios/unasked.json");
const throttle = readJson("clients/scenarios/throttle.json");

describe("the one retry without an answer", () => {
  assert.notEqual(unasked.cases.length, 0);
  for (const { name, ended, context, tokens, expect } of unasked.cases) {
    test(name, () => {
      const failed = contextOf({ ...unasked.base, ...context });
      const own = new Throttle(tokens);
      if (counts(failed)) {
        own.failure();
      }
      // The wait is drawn.
      for (let draw = 0; draw < 100; draw += 1) {
        const isAbsent = isAbsence(status[ended as keyof typeof status]);
        const waitMs = isAbsent ? unaskedWaitMs(failed, own) : undefined;
        assert.equal(waitMs !== undefined, expect.retry);
        if (waitMs !== undefined) {
          assert.ok(expect.least_ms <= waitMs && waitMs <= expect.most_ms, `waits ${waitMs} ms`);
        }
      }
    });
  }
});

describe("the local throttle", () => {
  assert.notEqual(throttle.sequences.length, 0);
  for (const { name, steps } of throttle.sequences) {
    test(name, () => {
      const own = new Throttle();
      for (const { failures = 0, successes = 0, grants } of steps as Json[]) {
        times(failures, () => own.failure());
        times(successes, () => own.success());
        if (grants !== undefined) {
          assert.equal(own.grants(), grants);
        }
      }
    });
  }

  test("is one for each target, and one for all beyond 1000", () => {
    const throttles = new Throttles();
    times(5, () => throttles.of("0").failure());
    assert.equal(throttles.of("0").grants(), false);
    assert.equal(throttles.of("1").grants(), true);
    times(1000, (number) => throttles.of(String(number)));
    assert.equal(throttles.of("one more"), throttles.of("and another"));
    assert.equal(throttles.of("0").grants(), false);
  });
});

describe("what the local throttle counts", () => {
  assert.notEqual(throttle.counts.length, 0);
  for (const { name, context, counts: counted } of throttle.counts) {
    test(name, () => {
      assert.equal(counts(contextOf(context)), counted);
    });
  }
});

function contextOf(json: Json) {
  const named = Object.entries(json).filter(([, value]) => value !== null);
  return fromJson(RetryContextSchema, Object.fromEntries(named));
}

function times(n: number, task: (number: number) => void): void {
  for (let number = 0; number < n; number += 1) {
    task(number);
  }
}
