import { AsyncLocalStorage } from "node:async_hooks";

/** What calls say in place of their client's settings. */
export interface Overrides {
  /** Whose budget pays. */
  tenant?: string;
  /** The name under which retryd knows the operation. */
  operation?: string;
  /** The time in milliseconds for each call of `fetch` as a whole, body included. A gRPC call has its `deadline`. */
  timeoutMs?: number;
}

const storage = new AsyncLocalStorage<Overrides>();

export function current(): Overrides {
  return storage.getStore() ?? {};
}

/** Runs `fn`; its calls, and those of what it awaits, go by `overrides`. */
export function run<T>(overrides: Overrides, fn: () => T): T {
  return storage.run({ ...current(), ...overrides }, fn);
}
