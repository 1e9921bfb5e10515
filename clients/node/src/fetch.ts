import { Call, type Failed } from "./call.js";
import { describeError, describeResponse } from "./http-evidence.js";
import { type Trace, traced } from "./http-trace.js";
import type { Kit } from "./kit.js";
import * as overrides from "./overrides.js";

export type Fetch = typeof globalThis.fetch;
type Input = Parameters<Fetch>[0];
type Init = NonNullable<Parameters<Fetch>[1]>;
type Outcome = { response: Response } | { error: unknown; trace: Trace };

/** A longer timer would go off at once. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

/** Repeats what `fetch` fails to get. A response with a status from 400 on is a failure. */
export function repeatedFetch(kit: Kit, fetch: Fetch): Fetch {
  return async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (!URL.canParse(url)) {
      return fetch(input, init);
    }
    return new RepeatedFetch(kit, fetch, input, init ?? {}, new URL(url)).response();
  };
}

class RepeatedFetch {
  readonly #fetch: Fetch;
  readonly #input: Input;
  readonly #init: Init;
  readonly #call: Call;
  readonly #gaveUp: AbortSignal;
  readonly #deadline: AbortSignal | undefined;

  constructor(kit: Kit, fetch: Fetch, input: Input, init: Init, url: URL) {
    this.#fetch = fetch;
    // Every attempt sends what the application gave at first, though it may use that again meanwhile.
    this.#input = input instanceof URL ? new URL(input) : input;
    this.#init = { ...init, ...copyOf(init) };
    const request = input instanceof Request ? input : undefined;
    const headers = new Headers(init.headers ?? request?.headers);
    const method = (init.method ?? request?.method ?? "GET").toUpperCase();
    const { tenant, operation, timeoutMs } = overrides.current();
    this.#gaveUp = init.signal ?? request?.signal ?? new AbortController().signal;
    this.#deadline = timeoutMs === undefined ? undefined : AbortSignal.timeout(atMost(timeoutMs));
    this.#call = new Call(kit, {
      tenant: tenant ?? kit.settings.tenant,
      operation: operation ?? `${method} ${url.hostname}`,
      target: () => url.host,
      deadlineMs: Date.now() + (timeoutMs ?? Infinity),
      bodyReplayable: isReplayable(init.body ?? request?.body),
      hasHeader: (name) => headers.has(name),
      gaveUp: this.#gaveUp,
    });
  }

  async response(): Promise<Response> {
    for (;;) {
      const outcome = await this.#attempt();
      if ("response" in outcome && outcome.response.status < 400) {
        this.#call.succeeded();
        return outcome.response;
      }
      const again = await this.#call.failed(this.#describe(outcome));
      if ("error" in outcome && !again) {
        throw outcome.error;
      }
      if ("response" in outcome) {
        if (!again && !this.#gaveUp.aborted) {
          return outcome.response;
        }
        // Nobody reads it any more. Left alone it would hold its connection.
        outcome.response.body?.cancel().catch(() => {});
      }
      this.#gaveUp.throwIfAborted();
    }
  }

  async #attempt(): Promise<Outcome> {
    const leftMs = this.#call.attempt() - Date.now();
    const attempt = new AbortController();
    const expire = () => attempt.abort(new DOMException("The attempt timed out", "TimeoutError"));
    const timer = leftMs === Infinity ? undefined : setTimeout(expire, atMost(leftMs)).unref();
    const signals = [this.#gaveUp, this.#deadline, attempt.signal].filter((one) => !!one);
    const init = { ...this.#init, signal: AbortSignal.any(signals) };
    const trace = { isKnown: false, isSent: false };
    try {
      return { response: await traced(trace, () => this.#fetch(this.#input, init)) };
    } catch (error) {
      return { error, trace };
    } finally {
      // The body is the application's: for it only the deadline and signal of the call hold.
      clearTimeout(timer);
    }
  }

  #describe(outcome: Outcome): Failed {
    if ("response" in outcome) {
      return describeResponse(outcome.response);
    }
    const { error, trace } = outcome;
    const timedOut = error instanceof DOMException && error.name === "TimeoutError";
    return describeError({ error, trace, timedOut, gaveUp: this.#gaveUp.aborted && !timedOut });
  }
}

/** What of it can be changed, each in its own kind: another `fetch` may know no other. */
function copyOf({ headers, body }: Init): Pick<Init, "headers" | "body"> {
  return {
    ...(headers && { headers: copyOfHeaders(headers) }),
    ...(body && { body: copyOfBody(body) }),
  };
}

function copyOfHeaders(headers: NonNullable<Init["headers"]>): NonNullable<Init["headers"]> {
  if (Array.isArray(headers)) {
    return headers.map(([name, value]) => [name, value] as [string, string]);
  }
  return Symbol.iterator in headers ? new Headers(headers) : { ...headers };
}

function copyOfBody(body: NonNullable<Init["body"]>): NonNullable<Init["body"]> {
  if (body instanceof URLSearchParams) {
    return new URLSearchParams(body);
  }
  if (body instanceof ArrayBuffer) {
    return body.slice(0);
  }
  return ArrayBuffer.isView(body)
    ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice()
    : body;
}

/** Whether `fetch` can send the same bytes once more. The body of a Request is a stream, whatever it was made from. */
function isReplayable(body: unknown): boolean {
  return (
    body === undefined ||
    body === null ||
    typeof body === "string" ||
    body instanceof URLSearchParams ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob
  );
}

function atMost(timeoutMs: number): number {
  return Math.max(0, Math.min(timeoutMs, TIMEOUT_MAX_MS));
}
