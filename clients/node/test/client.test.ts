import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { status } from "@grpc/grpc-js";
import { Client } from "../src/index.js";
import { Kit } from "../src/kit.js";
import { checked } from "../src/settings.js";
import { FakeRetryd } from "./fake-retryd.js";
import { type Testbed, startTestbed } from "./testbed.js";

let testbed: Testbed;
before(async () => void (testbed = await startTestbed()));
after(async () => testbed.stop());

describe("a client", () => {
  test("reports on its own while it runs", async () => {
    const client = connect("reports", { reportEveryMs: 100 });
    await succeed(client);
    while ((await testbed.play("reports")).usage["requests"] === undefined) {
      await delay(20);
    }
    await client.close();
    assert.equal((await testbed.play("reports")).usage["requests"], "1");
  });

  test("closes once, and reports once", async () => {
    const client = connect("closes");
    await succeed(client);
    await Promise.all([client.close(), client.close()]);
    await client.close();
    assert.equal((await testbed.play("closes")).usage["requests"], "1");
  });

  test("that is closed still makes calls, and repeats none", async () => {
    const client = connect("closed");
    await client.close();
    await succeed(client);
    await assert.rejects(client.fetch()(testbed.http["closed"]!));
  });

  test("takes tenant and operation of the call that is made within `with`", async () => {
    const client = connect("outer");
    await client.with({ tenant: "inner", operation: "op" }, async () => {
      await delay(1);
      await client.with({ operation: "other" }, () => fail(client));
      await fail(client);
    });
    await client.close();
    const { questions } = await testbed.play("inner");
    assert.deepEqual(
      questions.map(({ context }) => context["operation"]),
      ["other", "op"],
    );
    assert.deepEqual((await testbed.play("outer")).questions, []);
  });

  test("warns of a question that retryd refuses", async () => {
    const client = connect("warned", { target: testbed.retryd["foreign"]! });
    const warned = once(process, "warning");
    await fail(client);
    assert.match(String((await warned)[0]), /^RetrydWarning: .*PERMISSION_DENIED/);
    await client.close();
  });

  test("drops the usage that a report is refused for, with a warning", async () => {
    const retryd = new FakeRetryd();
    const kit = new Kit(checked({ target: await retryd.start(), tenant: "shop" }));
    retryd.refusals.set("overloaded", status.UNAVAILABLE);
    retryd.refusals.set("foreign", status.PERMISSION_DENIED);
    kit.usage.callStarted("shop", "overloaded");
    kit.usage.callStarted("shop", "foreign");
    const warned = once(process, "warning");
    await kit.close();
    assert.match(String((await warned)[0]), /refuses the usage of "foreign": grpc 7/);
    assert.deepEqual(
      kit.usage.takeAll().map(({ message }) => message.operation),
      ["overloaded"],
    );
    retryd.stop();
  });

  test("closes while its calls go on, and asks nothing more", async () => {
    const client = connect("goes-on");
    const closed = client.close();
    await fail(client);
    await closed;
    assert.deepEqual((await testbed.play("goes-on")).questions, []);
  });

  test("that nobody closes does not keep the process", async () => {
    const index = resolve(import.meta.dirname, "../src/index.js");
    const script = `
      import { Client } from ${JSON.stringify(index)};
      const operations = { op: { lease: 5 } };
      const target = ${JSON.stringify(testbed.retryd["asked"])};
      const client = new Client({ target, tenant: "leaves", operations });
      await client.fetch()(${JSON.stringify(testbed.http["faulty"])}).then((it) => it.text());
      console.log("done");
    `;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
    const slow = setTimeout(() => child.kill(), 20_000);
    const [code] = await once(child, "exit");
    clearTimeout(slow);
    assert.equal(code, 0);
  });
});

function connect(tenant: string, settings = {}): Client {
  return new Client({ target: testbed.retryd["asked"]!, tenant, askTimeoutMs: 5000, ...settings });
}

async function succeed(client: Client): Promise<void> {
  assert.equal((await client.fetch(async () => new Response())("http://service/")).status, 200);
}

async function fail(client: Client): Promise<void> {
  const own = async () => new Response(null, { status: 400 });
  assert.equal((await client.fetch(own)("http://service/")).status, 400);
}
