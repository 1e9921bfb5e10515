import type { Interceptor } from "@grpc/grpc-js";
import { type Fetch, repeatedFetch } from "./fetch.js";
import { interceptor } from "./interceptor.js";
import { Kit } from "./kit.js";
import * as overrides from "./overrides.js";
import { type Settings, checked } from "./settings.js";

/** Repeats failed calls when retryd says so. One for each process is enough; it can be shared by everything. */
export class Client {
  readonly #kit: Kit;

  /** @throws RangeError that names every setting that is wrong. */
  constructor(settings: Settings) {
    this.#kit = new Kit(checked(settings));
  }

  /**
   * For `interceptors` of a grpc-js client. Put it last: what a failure proves can only be seen next to the channel.
   * Leave retries out of the channel's service config.
   */
  interceptor(): Interceptor {
    return interceptor(this.#kit);
  }

  /** A `fetch` that repeats. Its failures are errors, and responses with a status from 400 on. */
  fetch(fetch: Fetch = globalThis.fetch): Fetch {
    return repeatedFetch(this.#kit, fetch);
  }

  /** Runs `fn`, whose calls go by `own` in place of the settings. */
  with<T>(own: overrides.Overrides, fn: () => T): T {
    return overrides.run(own, fn);
  }

  /** This process is about to stop: calls still get answers, but no more retries. */
  drain(): void {
    this.#kit.draining = true;
  }

  /** Reports what is not reported yet, gives leases back, and closes the connection. */
  close(): Promise<void> {
    return this.#kit.close();
  }
}
