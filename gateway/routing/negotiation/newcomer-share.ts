/** Unverified new agents get at most one in this many messages that an agent with evidence would win. */
const oneIn = 20
const agentsMax = 10_000

/** Counts, for each agent with evidence, the messages it would have won and those that new agents received instead. */
export class NewcomerShare {
  readonly #counts = new Map<string, { messages: number; given: number }>()

  /** Counts a message that a new agent would win over this agent. Returns whether the new agent gets the message. */
  take(evidenced: string): boolean {
    const count = this.#counts.get(evidenced) ?? { messages: 0, given: 0 }
    if (!this.#counts.has(evidenced)) this.#keep(evidenced, count)
    count.messages += 1
    if ((count.given + 1) * oneIn > count.messages) return false
    count.given += 1
    return true
  }

  /** At the maximum, the oldest count is dropped and later starts again from zero. */
  #keep(evidenced: string, count: { messages: number; given: number }): void {
    const oldest = this.#counts.keys().next().value
    if (this.#counts.size >= agentsMax && oldest !== undefined) this.#counts.delete(oldest)
    this.#counts.set(evidenced, count)
  }
}
