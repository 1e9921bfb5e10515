import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { setImmediate as settled } from "node:timers/promises";
import { type Acquired, Lease, Leases } from "../src/lease.js";

const LASTS_MS = 10_000;

describe("a lease", () => {
  let acquired: number;
  let answer: Acquired | undefined;
  const acquire = async () => ((acquired += 1), answer && { ...answer });

  beforeEach(() => {
    acquired = 0;
    const validUntilMs = performance.now() + LASTS_MS;
    answer = { tenant: "a", operation: "op", lease: "l1", left: 2, validUntilMs };
  });

  async function renewed(): Promise<Lease> {
    const lease = new Lease(acquire);
    lease.renew();
    await settled();
    return lease;
  }

  test("is spent one by one", async () => {
    const lease = await renewed();
    assert.ok(lease.spend(1));
    assert.ok(lease.spend(1));
    assert.equal(lease.spend(1), undefined);
  });

  test("pays for no retry that would be sent after its time", async () => {
    const lease = await renewed();
    assert.equal(lease.spend(LASTS_MS), undefined);
    assert.ok(lease.spend(LASTS_MS / 2));
  });

  test("takes back what is not sent", async () => {
    const lease = await renewed();
    lease.spend(1)!.giveBack();
    assert.equal(lease.end()?.left, 2);
  });

  test("is acquired at most once a second, even if nothing came of it", async () => {
    answer = undefined;
    const lease = await renewed();
    lease.renew();
    assert.equal(acquired, 1);
  });

  test("is acquired anew when it is spent, or its time is over", async ({ mock }) => {
    const startedMs = performance.now();
    const now = mock.method(performance, "now", () => startedMs);
    const lease = await renewed();
    now.mock.mockImplementation(() => startedMs + 1001);
    lease.renew();
    assert.equal(acquired, 1);
    lease.spend(1);
    lease.spend(1);
    lease.renew();
    assert.equal(acquired, 2);
    await settled();
    lease.renew();
    assert.equal(acquired, 2);
    now.mock.mockImplementation(() => startedMs + LASTS_MS);
    lease.renew();
    assert.equal(acquired, 3);
  });

  test("is not acquired again while there is some of it", async () => {
    const lease = await renewed();
    lease.spend(1);
    lease.renew();
    assert.equal(acquired, 1);
  });

  test("ends once, and only with what is left", async () => {
    const lease = await renewed();
    lease.spend(1);
    assert.equal(lease.end()?.left, 1);
    assert.equal(lease.end(), undefined);
    assert.equal(lease.spend(1), undefined);
  });

  test("is one for each tenant and operation, of at most 10 000", () => {
    const leases = new Leases(acquire);
    assert.equal(leases.of("a", "op"), leases.of("a", "op"));
    assert.notEqual(leases.of("a", "op"), leases.of("b", "op"));
    for (let number = 0; number < 10_000; number += 1) {
      leases.of(String(number), "op");
    }
    assert.equal(leases.of("one more", "op"), undefined);
  });
});
