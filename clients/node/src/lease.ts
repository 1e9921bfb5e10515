const ACQUIRE_EVERY_MS = 1000;
const LEASES_MAX = 10_000;

/** What one AcquireRetries brought. */
export interface Acquired {
  tenant: string;
  operation: string;
  lease: string;
  left: number;
  /** By `performance.now()`. A retry that is not sent by then is lost. */
  validUntilMs: number;
}

/** A retry out of a lease. */
export interface Spent {
  lease: string;
  /** Takes it back, if it is not sent. False if the lease is no longer here, so that only retryd can take it. */
  giveBack(): boolean;
}

/** Asks retryd for retries; undefined if there are none to have. Never rejects. */
export type Acquire = (tenant: string, operation: string) => Promise<Acquired | undefined>;

/** Retries of one tenant and operation that were taken ahead. */
export class Lease {
  readonly #acquire: () => Promise<Acquired | undefined>;
  #held: Acquired | undefined;
  #askedAtMs = -Infinity;

  constructor(acquire: () => Promise<Acquired | undefined>) {
    this.#acquire = acquire;
  }

  /** Takes new ones in the background if there are none, at most once a second. */
  renew(): void {
    const nowMs = performance.now();
    if (0 < this.left || nowMs - this.#askedAtMs < ACQUIRE_EVERY_MS) {
      return;
    }
    this.#askedAtMs = nowMs;
    void this.#acquire().then((acquired) => {
      this.#held = acquired ?? this.#held;
    });
  }

  /** How many can be spent now. */
  get left(): number {
    return this.#isUsableAt(performance.now()) ? this.#held!.left : 0;
  }

  /** Spends one on a retry that is sent after `waitMs`; undefined if there is none that lasts so long. */
  spend(waitMs: number): Spent | undefined {
    const held = this.#held;
    if (held === undefined || !this.#isUsableAt(performance.now() + waitMs)) {
      return undefined;
    }
    held.left -= 1;
    const giveBack = () => {
      held.left += 1;
      return held === this.#held;
    };
    return { lease: held.lease, giveBack };
  }

  /** What is left, for the last time. */
  end(): Acquired | undefined {
    const rest = 0 < this.left ? this.#held : undefined;
    this.#held = undefined;
    return rest;
  }

  #isUsableAt(ms: number): boolean {
    return this.#held !== undefined && 0 < this.#held.left && ms < this.#held.validUntilMs;
  }
}

/** The leases of the operations that are set up to have one, for every tenant that calls them. */
export class Leases {
  readonly #acquire: Acquire;
  readonly #leases = new Map<string, Lease>();

  constructor(acquire: Acquire) {
    this.#acquire = acquire;
  }

  of(tenant: string, operation: string): Lease | undefined {
    const name = `${tenant}\0${operation}`;
    const known = this.#leases.get(name);
    if (known !== undefined || LEASES_MAX <= this.#leases.size) {
      return known;
    }
    const lease = new Lease(() => this.#acquire(tenant, operation));
    this.#leases.set(name, lease);
    return lease;
  }

  end(): Acquired[] {
    return [...this.#leases.values()].map((lease) => lease.end()).filter((rest) => !!rest);
  }
}
