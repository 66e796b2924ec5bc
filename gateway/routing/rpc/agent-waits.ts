import { setTimeout as pause } from 'node:timers/promises'

const lookEveryMs = 50

export interface AgentWaitsOptions {
  /** Messages that wait at the same time. Default 256. */
  waitingMax?: number
  /** Of one caller. Default 32. */
  perOwnerMax?: number
}

/** Messages that wait a moment for an agent to come back. More than the bound are not held back: they are answered at once. */
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
   * True once `isBack`; false when the time is over, `hasLeft` says that the caller is gone, or too many wait already.
   * @param until in milliseconds since 1970
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
        await pause(Math.min(lookEveryMs, leftMs))
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
