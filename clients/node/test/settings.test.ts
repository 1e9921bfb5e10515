import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, type Settings } from "../src/index.js";
import { checked } from "../src/settings.js";

test("everything that is wrong is told in one message", () => {
  const wrong = {
    askTimeoutMs: 0.5,
    attemptTimeoutMs: 0,
    reportEveryMs: 10_001,
    operations: { charge: { keyHeader: "", lease: 1001 }, refund: { lease: 1.5 } },
  };
  assert.throws(() => new Client(wrong as unknown as Settings), {
    name: "RangeError",
    message:
      "retryd client: `target` is required; `tenant` is required; `askTimeoutMs` is not 1 to 10 000; " +
      "`attemptTimeoutMs` is not 1 to 2 147 483 647; `reportEveryMs` is not 100 to 10 000; " +
      '`operations["charge"].keyHeader` is empty; `operations["charge"].lease` is not 1 to 1000; ' +
      '`operations["refund"].lease` is not 1 to 1000',
  });
});

test("a name that retryd would refuse is refused", () => {
  const operations = { "": {}, "a\n": {}, ["o".repeat(257)]: {} };
  for (const tenant of ["t".repeat(129), "ü".repeat(65), "\x7f"]) {
    assert.throws(
      () => new Client({ target: "localhost:1", tenant, operations }),
      ({ message }) => message.match(/control character/g).length === 4,
    );
  }
});

test("the limits themselves are allowed, and the rest has its default", () => {
  const least = { askTimeoutMs: 1, attemptTimeoutMs: 1, reportEveryMs: 100 };
  const most = { askTimeoutMs: 10_000, attemptTimeoutMs: 2 ** 31 - 1, reportEveryMs: 10_000 };
  const required = { target: "localhost:1", tenant: "shop" };
  for (const limits of [least, most, {}]) {
    const { askTimeoutMs, reportEveryMs, fallback, operations } = checked({
      ...required,
      ...limits,
    });
    const expected = {
      askTimeoutMs: 20,
      reportEveryMs: 5000,
      fallback: true,
      operations: {},
      ...limits,
    };
    assert.deepEqual({ ...expected, askTimeoutMs, reportEveryMs, fallback, operations }, expected);
  }
});

test("a setting that is given as undefined has its default too", () => {
  const settings = { target: "localhost:1", tenant: "shop", askTimeoutMs: undefined };
  assert.equal(checked(settings as unknown as Settings).askTimeoutMs, 20);
});
