import { setTimeout as pause } from 'node:timers/promises'

const pollMs = 50

export interface AgentWaitsOptions {
  /** Maximum number of waiting messages. Default 256. */
  waitingMax?: number
  /** Maximum number of waiting messages of one caller. Default 32. */
  perOwnerMax?: number
}

/** Lets messages wait briefly for an absent agent. Messages beyond the maximum do not wait. */
export class AgentWaits {
  readonly #waitingMax: number
  readonly #perOwnerMax: number
  readonly #ofOwner = new Map<string, number>()
  #waiting = 0

  constructor({ waitingMax = 256, perOwnerMax = 32 }: AgentWaitsOptions = {}) {
    this.#waitingMax = waitingMax
    this.#perOwnerMax = perOwnerMax
  }

  /**
   * Resolves with true once `isBack` returns true, and with false at the deadline, if the caller disconnected
   * (`hasLeft`), or if too many messages are waiting.
   * @param until deadline in milliseconds since 1970
   */
  async wait(
    owner: string,
    until: number,
    { isBack, hasLeft }: { isBack: () => boolean; hasLeft: () => boolean },
  ): Promise<boolean> {
    const ofOwner = this.#ofOwner.get(owner) ?? 0
    if (this.#waiting >= this.#waitingMax || ofOwner >= this.#perOwnerMax) return false
    this.#waiting += 1
    this.#ofOwner.set(owner, ofOwner + 1)
    try {
      while (!isBack()) {
        const leftMs = until - Date.now()
        if (leftMs <= 0 || hasLeft()) return false
        await pause(Math.min(pollMs, leftMs))
      }
      return true
    } finally {
      this.#waiting -= 1
      const left = (this.#ofOwner.get(owner) ?? 1) - 1
      if (left === 0) this.#ofOwner.delete(owner)
      else this.#ofOwner.set(owner, left)
    }
  }
}
