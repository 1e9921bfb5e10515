import { create } from "@bufbuild/protobuf";
import { FailureClass, type TenantUsage, TenantUsageSchema } from "../gen/retryd/v1/retryd_pb.js";
import { isName } from "./settings.js";
import { toDuration } from "./time.js";

const NAMES_MAX = 10_000;
const COUNT_MAX = 1_000_000_000;

type Count =
  | "requests"
  | "firstTrySuccesses"
  | "retriedSuccesses"
  | "retriedTransient"
  | "retriedThrottling"
  | "retriedTimeout";

/** What happened under one tenant and operation since `sinceMs`. */
interface Counted {
  tenant: string;
  operation: string;
  sinceMs: number;
  counts: Map<Count, number>;
}

/** Counts on their way to retryd: they are in no other place. */
export interface Taken {
  message: TenantUsage;
  /** Puts them back, to travel with the next question or report. Else they are counted there, or lost. */
  keep(): void;
}

const CLASS_COUNTS: Partial<Record<FailureClass, Count>> = {
  [FailureClass.TRANSIENT]: "retriedTransient",
  [FailureClass.THROTTLING]: "retriedThrottling",
  [FailureClass.TIMEOUT]: "retriedTimeout",
};

/** What the calls of this process did and retryd does not know yet. */
export class Usage {
  readonly #entries = new Map<string, Counted>();

  callStarted(tenant: string, operation: string): void {
    this.#count(tenant, operation, ["requests"]);
  }

  firstTrySucceeded(tenant: string, operation: string): void {
    this.#count(tenant, operation, ["firstTrySuccesses"]);
  }

  /** `failureClass` is that of the last Decision; undefined if no Decision let the call go on. */
  retrySucceeded(tenant: string, operation: string, failureClass?: FailureClass): void {
    const byClass = failureClass === undefined ? undefined : CLASS_COUNTS[failureClass];
    this.#count(tenant, operation, ["retriedSuccesses", ...(byClass ? [byClass] : [])]);
  }

  take(tenant: string, operation: string): Taken | undefined {
    const entry = this.#entries.get(key(tenant, operation));
    return entry && this.#taken(entry);
  }

  takeAll(): Taken[] {
    return [...this.#entries.values()].map((entry) => this.#taken(entry));
  }

  #count(tenant: string, operation: string, counts: Count[]): void {
    const added = new Map(counts.map((count) => [count, 1]));
    this.#add({ tenant, operation, sinceMs: performance.now(), counts: added });
  }

  #add(more: Counted): void {
    const name = key(more.tenant, more.operation);
    const entry = this.#entries.get(name);
    if (entry !== undefined) {
      entry.sinceMs = Math.min(entry.sinceMs, more.sinceMs);
      for (const [count, value] of more.counts) {
        entry.counts.set(count, Math.min(COUNT_MAX, (entry.counts.get(count) ?? 0) + value));
      }
    } else if (this.#entries.size < NAMES_MAX && isTaken(more)) {
      this.#entries.set(name, more);
    }
  }

  #taken(entry: Counted): Taken {
    this.#entries.delete(key(entry.tenant, entry.operation));
    // A period of zero would be refused.
    const period = toDuration(Math.max(1, Math.ceil(performance.now() - entry.sinceMs)));
    const counts = Object.fromEntries([...entry.counts].map(([name, n]) => [name, BigInt(n)]));
    const message = create(TenantUsageSchema, {
      tenant: entry.tenant,
      operation: entry.operation,
      usage: { ...counts, period },
    });
    return { message, keep: () => this.#add(entry) };
  }
}

function key(tenant: string, operation: string): string {
  return `${tenant}\0${operation}`;
}

/** A name that retryd refuses would come back with every report, and a large one brings all of it back. */
function isTaken({ tenant, operation }: Counted): boolean {
  return tenant !== "" && operation !== "" && isName(tenant, 128) && isName(operation, 256);
}
