import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";

/** What undici did for one call of `fetch`, redirects included. */
export interface Trace {
  /** It was seen at all; another implementation of `fetch` is not. */
  isKnown: boolean;
  /** The head of a request was handed to a socket. */
  isSent: boolean;
}

/** The messages of undici's diagnostics channels, as far as they are read. */
interface Message {
  request: object;
}

const attempts = new AsyncLocalStorage<Trace>();
const traces = new WeakMap<object, Trace>();

// An error of `fetch` does not tell whether the connection that failed was the first, or that of a redirect after a
// request which a server has already worked on. These events do.
subscribe("undici:request:create", (message) => {
  const trace = attempts.getStore();
  if (trace !== undefined) {
    trace.isKnown = true;
    traces.set((message as Message).request, trace);
  }
});

// Written by whoever's socket became free: by the request, not by the context.
subscribe("undici:client:sendHeaders", (message) => wasSent(message as Message));

// An older undici says nothing when it sends over HTTP/2, but what was answered was sent.
subscribe("undici:request:headers", (message) => wasSent(message as Message));

function wasSent({ request }: Message): void {
  const trace = traces.get(request);
  if (trace !== undefined) {
    trace.isSent = true;
  }
}

/** Runs one attempt; what becomes of its requests is written down in `trace`. */
export function traced<T>(trace: Trace, attempt: () => T): T {
  return attempts.run(trace, attempt);
}
