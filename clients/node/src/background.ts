/** Work that no call waits for. What fails is left. */
export class Background {
  readonly #tasks = new Set<Promise<unknown>>();

  async run<T>(task: () => Promise<T>): Promise<T | undefined> {
    const done = task().catch(() => undefined);
    this.#tasks.add(done);
    try {
      return await done;
    } finally {
      this.#tasks.delete(done);
    }
  }

  /** Waits for all of it, and for what that starts in turn. */
  async idle(): Promise<void> {
    while (this.#tasks.size > 0) {
      await Promise.all(this.#tasks);
    }
  }
}
