import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ServiceError, status } from "@grpc/grpc-js";
import {
  BudgetService,
  type Decision,
  type ReleaseRetriesRequestSchema,
  type RetryContext,
  RetryService,
} from "../gen/retryd/v1/retryd_pb.js";
import { Background } from "./background.js";
import { type Acquired, type Lease, Leases } from "./lease.js";
import { Retryd, isRefusal } from "./retryd.js";
import type { CheckedSettings } from "./settings.js";
import { fromDuration } from "./time.js";
import { type Taken, Usage } from "./usage.js";

/** More than a healthy retryd needs; `close` waits for two of them at most. */
const BACKGROUND_TIMEOUT_MS = 1000;
const REPORT_ENTRIES_MAX = 1000;
const WARN_EVERY_MS = 1000;

/** What a question came to: an answer, or the status that it ended with. */
export type Asked = { decision: Decision } | { ended: status };

/** What the calls of one client share, and what they say to retryd. */
export class Kit {
  readonly settings: CheckedSettings;
  readonly usage = new Usage();
  draining = false;

  readonly #retryd: Retryd;
  readonly #background = new Background();
  readonly #leases: Leases;
  readonly #reporting: NodeJS.Timeout;
  #closing: Promise<void> | undefined;
  #warnedAtMs = -Infinity;

  constructor(settings: CheckedSettings) {
    this.settings = settings;
    this.#retryd = new Retryd(settings.target, settings.credentials);
    this.#leases = new Leases((tenant, operation) =>
      this.#background.run(() => this.#acquire(tenant, operation)),
    );
    for (const operation of Object.keys(settings.operations)) {
      this.lease(settings.tenant, operation)?.renew();
    }
    const report = () => this.inBackground(() => this.#report());
    this.#reporting = setInterval(report, settings.reportEveryMs).unref();
  }

  /** Asks about a failed attempt, once, with the usage of its tenant and operation. Never rejects. */
  async ask(failed: RetryContext, timeoutMs: number): Promise<Asked> {
    if (this.#closing !== undefined) {
      // Calls that go on must not keep `close` from its end.
      return { ended: status.CANCELLED };
    }
    const taken = this.usage.take(failed.tenant, failed.operation);
    const question = taken?.message.usage ? { ...failed, usage: taken.message.usage } : failed;
    try {
      return { decision: await this.#retryd.call(RetryService.method.decide, question, timeoutMs) };
    } catch (error) {
      return { ended: this.#settle(error as ServiceError, taken ? [taken] : []) };
    }
  }

  /** Tells a failure that nobody waits to hear about. */
  tell(failed: RetryContext): void {
    this.inBackground(() => this.ask(failed, BACKGROUND_TIMEOUT_MS));
  }

  /** Gives a grant back that is not used. */
  release(request: MessageInitShape<typeof ReleaseRetriesRequestSchema>): void {
    const method = BudgetService.method.releaseRetries;
    this.inBackground(() => this.#retryd.call(method, request, BACKGROUND_TIMEOUT_MS));
  }

  /** Does what no call waits for; `close` does. What fails is left. */
  inBackground(task: () => Promise<unknown>): void {
    void this.#background.run(task);
  }

  /** The retries that are taken ahead for this operation, if its settings say so. */
  lease(tenant: string, operation: string): Lease | undefined {
    const isLeased =
      this.#closing === undefined && this.settings.operations[operation]?.lease !== undefined;
    return isLeased ? this.#leases.of(tenant, operation) : undefined;
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  warn(message: string): void {
    const nowMs = performance.now();
    if (WARN_EVERY_MS <= nowMs - this.#warnedAtMs) {
      this.#warnedAtMs = nowMs;
      process.emitWarning(message, "RetrydWarning");
    }
  }

  async #end(): Promise<void> {
    clearInterval(this.#reporting);
    await this.#background.idle();
    for (const { tenant, operation, lease, left } of this.#leases.end()) {
      this.release({ tenant, operation, unused: left, grant: { case: "lease", value: lease } });
    }
    await this.#report();
    await this.#background.idle();
    this.#retryd.close();
  }

  async #report(): Promise<void> {
    const all = this.usage.takeAll();
    for (let from = 0; from < all.length; from += REPORT_ENTRIES_MAX) {
      await this.#reportSome(all.slice(from, from + REPORT_ENTRIES_MAX));
    }
  }

  async #reportSome(taken: Taken[]): Promise<void> {
    const request = { usage: taken.map(({ message }) => message), reportId: randomUUID() };
    const method = BudgetService.method.reportUsage;
    try {
      const { results } = await this.#retryd.call(method, request, BACKGROUND_TIMEOUT_MS);
      for (const [place, entry] of taken.entries()) {
        const { outcome } = results[place] ?? {};
        if (outcome?.case !== "refusal") continue;
        if (outcome.value.grpcCode === status.UNAVAILABLE) {
          entry.keep();
        } else {
          // It would be refused again and again.
          this.warn(
            `retryd refuses the usage of ${JSON.stringify(entry.message.operation)}: grpc ${outcome.value.grpcCode}`,
          );
        }
      }
    } catch (error) {
      this.#settle(error as ServiceError, taken);
    }
  }

  async #acquire(tenant: string, operation: string): Promise<Acquired | undefined> {
    const sentAtMs = performance.now();
    const wanted = this.settings.operations[operation]?.lease ?? 0;
    const request = { tenant, operation, wanted };
    const method = BudgetService.method.acquireRetries;
    const answer = await this.#retryd.call(method, request, BACKGROUND_TIMEOUT_MS);
    const { granted: left, lease, validFor, shadow } = answer;
    // Under a policy that only observes they come from a copy of its budgets, and pay for nothing.
    const isUsable = 0 < left && !shadow;
    const validUntilMs = sentAtMs + fromDuration(validFor);
    return isUsable ? { tenant, operation, lease, left, validUntilMs } : undefined;
  }

  /** Usage stays here after an error that retryd itself made. After any other its fate is unknown, and it is dropped. */
  #settle(error: ServiceError, taken: Taken[]): status {
    if (isRefusal(error)) {
      taken.forEach(keep);
    }
    if (error.code === status.INVALID_ARGUMENT || error.code === status.PERMISSION_DENIED) {
      this.warn(`retryd refuses what it was told: ${JSON.stringify(error.message)}`);
    }
    return error.code;
  }
}

function keep(taken: Taken): void {
  taken.keep();
}
