import assert from "node:assert/strict";
import { once } from "node:events";
import { type RequestListener, type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, test } from "node:test";
import { Client, type Settings } from "../src/index.js";
import { FakeRetryd } from "./fake-retryd.js";
import { type Json, type Testbed, startTestbed } from "./testbed.js";

let testbed: Testbed;
let client: Client;
let servers: Server[] = [];
before(async () => void (testbed = await startTestbed()));
after(async () => testbed.stop());
afterEach(async () => {
  await client?.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers = [];
});

describe("fetch", () => {
  test("hands the application the response and the error that the library made", async () => {
    const own = new Response("no", { status: 503 });
    const fetch = connect("own-response").fetch(async () => own);
    assert.equal(await fetch("http://service/"), own);
    const error = new TypeError("fetch failed");
    const failing = client.fetch(async () => Promise.reject(error));
    await assert.rejects(failing("http://service/"), (thrown) => thrown === error);
  });

  test("leaves an input that is no address to the library", async () => {
    const fetch = connect("no-address").fetch();
    const [own, wrapped] = await Promise.allSettled([
      globalThis.fetch("nonsense"),
      fetch("nonsense"),
    ]);
    assert.equal(
      String((wrapped as PromiseRejectedResult).reason),
      String((own as PromiseRejectedResult).reason),
    );
  });

  for (const [name, body, replayable] of [
    ["text", "a", true],
    ["a buffer", Buffer.from("a"), true],
    ["an ArrayBuffer", new ArrayBuffer(1), true],
    ["URLSearchParams", new URLSearchParams("a=b"), true],
    ["a Blob", new Blob(["a"]), true],
    ["no body", undefined, true],
    ["a stream", new Blob(["a"]).stream(), false],
    ["a form, whose boundary is drawn", form(), false],
  ] as [string, BodyInit | undefined, boolean][]) {
    test(`${replayable ? "repeats" : "does not repeat"} ${name}`, async () => {
      const run = `replayable-${name}`;
      const bodies: string[] = [];
      const address = await serve(async (request, response) => {
        let text = "";
        for await (const chunk of request) {
          text += chunk;
        }
        bodies.push(text);
        response.writeHead(bodies.length === 1 ? 503 : 200).end();
      });
      const fetch = connect(run, { declared: true }).fetch();
      const init = { method: "POST", duplex: "half", ...(body !== undefined && { body }) };
      const { status } = await named(() => fetch(address, init as RequestInit));
      assert.equal(status, replayable ? 200 : 503);
      assert.equal(new Set(bodies).size, 1);
    });
  }

  for (const [name, body, change] of [
    ["a buffer", Buffer.from("one"), (it: Buffer) => it.write("two")],
    ["a form's fields", new URLSearchParams("a=1"), (it: URLSearchParams) => it.set("a", "2")],
  ] as [string, BodyInit, (it: BodyInit) => void][]) {
    test(`sends in every attempt what the application gave at first: ${name}`, async () => {
      const retryd = new FakeRetryd(0n);
      const sent: string[] = [];
      const own = async (input: unknown, init?: RequestInit) => {
        const headers = new Headers(init?.headers);
        const body = await new Response(init?.body ?? null).text();
        sent.push(`${input} ${headers.get("idempotency-key")} ${body}`);
        return new Response(null, { status: sent.length === 1 ? 503 : 200 });
      };
      const settings = { target: await retryd.start(), tenant: "reused", askTimeoutMs: 10_000 };
      client = new Client(settings);
      const [url, headers] = [new URL("http://one/"), { "idempotency-key": "k1" }];
      const answer = client.fetch(own as typeof fetch)(url, { method: "POST", headers, body });
      await retryd.asked;
      change(body);
      headers["idempotency-key"] = "k2";
      url.host = "two";
      retryd.answer();
      assert.equal((await answer).status, 200);
      assert.equal(sent[0], sent[1]);
      retryd.stop();
    });
  }

  test("takes null as no settings, and no body beside a Request as that of the Request", async () => {
    const bodies: string[] = [];
    const address = await serve(async (request, response) => {
      for await (const chunk of request) {
        bodies.push(String(chunk));
      }
      response.writeHead(503).end();
    });
    const fetch = connect("null", { declared: true }).fetch();
    const request = new Request(address, { method: "POST", body: "once" });
    assert.equal((await named(() => fetch(request, { body: null }))).status, 503);
    assert.deepEqual(bodies, ["once"]);
    assert.equal((await fetch(address, null as unknown as RequestInit)).status, 503);
  });

  test("reads method, headers and signal of a Request, whose body is a stream", async () => {
    const address = await serve((request, response) => {
      response.writeHead(503).end(request.method);
    });
    const fetch = connect("request", { keyHeader: "idempotency-key" }).fetch();
    const headers = { "idempotency-key": "k1" };
    const response = await named(() =>
      fetch(new Request(address, { method: "PUT", headers, body: "a" })),
    );
    assert.equal(await response.text(), "PUT");
    const context = await asked("request");
    assert.deepEqual(context["idempotency"], { keyRegistered: true, keySent: true });
    assert.equal(context["bodyReplayable"], undefined);
    const aborted = new Request(address, { signal: AbortSignal.abort(new Error("mine")) });
    await assert.rejects(fetch(aborted), { message: "mine" });
  });

  test("lets go of the answers of failed attempts", async () => {
    let attempts = 0;
    let released: Promise<unknown> | undefined;
    const address = await serve((_request, response) => {
      attempts += 1;
      if (attempts === 1) {
        released = once(response, "close");
        response.writeHead(503).write("an answer without an end");
      } else {
        response.end("done");
      }
    });
    const fetch = connect("drained", { declared: true }).fetch();
    assert.equal(await (await named(() => fetch(address))).text(), "done");
    await released;
  });

  test("does not take a redirect's failed connection for a request that was never sent", async () => {
    const address = await serve((_request, response) => {
      response.writeHead(307, { location: `${testbed.http["closed"]}/` }).end();
    });
    const fetch = connect("redirected").fetch();
    await assert.rejects(named(() => fetch(address, { method: "POST", body: "a" })));
    const context = await asked("redirected");
    assert.equal(context["evidence"], "EVIDENCE_MAYBE_PROCESSED");
    assert.equal(context["failure"].category, "FAILURE_CATEGORY_CONNECTION_RESET");
  });

  test("of another make proves nothing", async () => {
    const cause = Object.assign(new Error("refused"), { code: "ECONNREFUSED", syscall: "connect" });
    const error = new TypeError("fetch failed", { cause });
    const fetch = connect("other-fetch").fetch(() => Promise.reject(error));
    await assert.rejects(
      named(() => fetch("http://service/")),
      error,
    );
    const context = await asked("other-fetch");
    assert.equal(context["evidence"], "EVIDENCE_MAYBE_PROCESSED");
    assert.equal(context["failure"].category, "FAILURE_CATEGORY_CONNECTION_RESET");
  });

  test("ends a body that comes after the attempt's time-out only by the time of the call", async () => {
    const address = await serve((_request, response) => {
      response.write("first, ");
      setTimeout(() => response.end("last"), 1500);
    });
    const fetch = connect("slow-body", {}, { attemptTimeoutMs: 1000 }).fetch();
    assert.equal(await (await fetch(address)).text(), "first, last");
    const late = await client.with({ timeoutMs: 1000 }, () => fetch(address));
    await assert.rejects(late.text(), { name: "TimeoutError" });
  });

  test("returns an aborted call while retryd is still asked, and gives back a late grant", async () => {
    const retryd = new FakeRetryd();
    const settings = { target: await retryd.start(), askTimeoutMs: 10_000 };
    const fetch = connect("aborted", {}, settings).fetch(
      async () => new Response(null, { status: 503 }),
    );
    const caller = new AbortController();
    void retryd.asked.then(() => caller.abort(new Error("mine")));
    await assert.rejects(fetch("http://service/", { signal: caller.signal }), { message: "mine" });
    retryd.answer();
    await client.close();
    assert.equal(retryd.released.length, 1);
    retryd.stop();
  });
});

function connect(tenant: string, operation = {}, settings: Partial<Settings> = {}): Client {
  const target = testbed.retryd["asked"]!;
  client = new Client({
    target,
    tenant,
    askTimeoutMs: 5000,
    operations: { op: operation },
    ...settings,
  });
  return client;
}

/** What the first question of a run said. */
async function asked(run: string): Promise<Json> {
  const [question] = (await testbed.play(run)).questions;
  assert.ok(question, "nothing was asked");
  return question.context;
}

function named<T>(call: () => T): T {
  return client.with({ operation: "op" }, call);
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function form(): FormData {
  const data = new FormData();
  data.set("a", "b");
  return data;
}
