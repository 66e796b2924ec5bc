/** Of the messages that an agent with evidence would win, unverified newcomers get at most one in so many. */
const oneIn = 20
const agentsMax = 10_000

/** Counts, for every agent with evidence, the messages that it would have won and those that newcomers got instead. */
export class NewcomerShare {
  readonly #counts = new Map<string, { messages: number; given: number }>()

  /** Counts a message that a newcomer would win over the agent. True: the newcomer gets it. */
  take(evidenced: string): boolean {
    const count = this.#counts.get(evidenced) ?? { messages: 0, given: 0 }
    if (!this.#counts.has(evidenced)) this.#keep(evidenced, count)
    count.messages += 1
    if ((count.given + 1) * oneIn > count.messages) return false
    count.given += 1
    return true
  }

  /** The count that was made first makes room: that agent starts from zero, and newcomers with it. */
  #keep(evidenced: string, count: { messages: number; given: number }): void {
    const oldest = this.#counts.keys().next().value
    if (this.#counts.size >= agentsMax && oldest !== undefined) this.#counts.delete(oldest)
    this.#counts.set(evidenced, count)
  }
}
