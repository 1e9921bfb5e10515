const TOKENS_MAX = 10_000;
const FAILURE = 1_000;
const SUCCESS = 100;
const TARGETS_MAX = 1000;

/** The local throttle of one target (gRFC A6): 10 tokens, counted in thousandths. */
export class Throttle {
  #tokens: number;

  constructor(tokens = TOKENS_MAX / 1_000) {
    this.#tokens = tokens * 1_000;
  }

  failure(): void {
    this.#tokens = Math.max(0, this.#tokens - FAILURE);
  }

  success(): void {
    this.#tokens = Math.min(TOKENS_MAX, this.#tokens + SUCCESS);
  }

  grants(): boolean {
    return TOKENS_MAX < 2 * this.#tokens;
  }
}

/** Of the whole process: clients that call the same target learn from each other. */
export class Throttles {
  readonly #byTarget = new Map<string, Throttle>();
  // Further targets share one, so that a name for each call cannot fill the memory.
  readonly #others = new Throttle();

  of(target: string): Throttle {
    const known = this.#byTarget.get(target);
    if (known !== undefined) {
      return known;
    }
    if (TARGETS_MAX <= this.#byTarget.size) {
      return this.#others;
    }
    const fresh = new Throttle();
    this.#byTarget.set(target, fresh);
    return fresh;
  }
}

export const throttles = new Throttles();
