/** Runs steps that share a key one after another; steps without a common key run concurrently. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T>(names: readonly string[], step: () => Promise<T>): Promise<T> {
    if (names.length === 0) return step()
    const before = names.flatMap((name) => this.#last.get(name) ?? [])
    const turn = Promise.allSettled(before).then(step)
    for (const name of names) this.#last.set(name, turn)
    try {
      return await turn
    } finally {
      for (const name of names) if (this.#last.get(name) === turn) this.#last.delete(name)
    }
  }
}
