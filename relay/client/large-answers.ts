/** The size beyond which an answer counts as large, and the number of large answers of one agent that are in memory at a time. */
const [largeBytes, largeMax] = [1024 * 1024, 2]

/**
 * Limits the memory that one agent's answers occupy while they are received, because the relay serves many agents. The rest of an
 * answer beyond the limit is not read until an earlier one has been processed.
 */
export class LargeAnswers {
  #free = largeMax
  readonly #waiting = new Set<() => void>()

  /** Counts the bytes of one answer. Dispose it once the answer has been processed. */
  open(signal: AbortSignal): AnswerBytes {
    return new AnswerBytes(
      () => this.#take(signal),
      () => this.#release(),
    )
  }

  async #take(signal: AbortSignal): Promise<void> {
    while (this.#free === 0) {
      signal.throwIfAborted()
      const { promise, resolve } = Promise.withResolvers<void>()
      const wake = () => resolve()
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake, { once: true })
      await promise
      signal.removeEventListener('abort', wake)
      this.#waiting.delete(wake)
    }
    this.#free -= 1
  }

  #release(): void {
    this.#free += 1
    for (const wake of this.#waiting) wake()
  }
}

export class AnswerBytes implements Disposable {
  readonly #take: () => Promise<void>
  readonly #release: () => void
  #bytes = 0
  #isLarge = false

  constructor(take: () => Promise<void>, release: () => void) {
    this.#take = take
    this.#release = release
  }

  /** Yields the chunks of the body, and waits before a chunk that makes the answer large. */
  async *of(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of body) {
      this.#bytes += chunk.byteLength
      if (this.#bytes > largeBytes && !this.#isLarge) {
        await this.#take()
        this.#isLarge = true
      }
      yield chunk
    }
  }

  /** The bytes so far have been processed. */
  clear(): void {
    this.#bytes = 0
    if (this.#isLarge) this.#release()
    this.#isLarge = false
  }

  [Symbol.dispose](): void {
    this.clear()
  }
}
