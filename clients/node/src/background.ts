/** Work that no call waits for. What fails is left; `idle` waits for all of it. */
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

  async idle(): Promise<void> {
    await Promise.all(this.#tasks);
  }
}
