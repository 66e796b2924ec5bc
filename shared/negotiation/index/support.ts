import { sameTextMin, supportedEvidence, supportMin, trustInCallers } from '../score/learning.ts'

/** The most similar examples of one agent with the same sign. */
export class Support {
  #first = 0
  #second = 0
  #firstCaller = -1
  /** The most similar example of another caller than the first one's. */
  #ofOther = 0
  /** Number of examples that are similar enough to support others. */
  #count = 0
  readonly #counted = new Set<number>()
  /** The callers of these examples. */
  readonly #callers = new Set<number>()

  clear(): void {
    this.#first = 0
    this.#second = 0
    this.#firstCaller = -1
    this.#ofOther = 0
    this.#count = 0
    this.#counted.clear()
    this.#callers.clear()
  }

  add(
    value: number,
    { callerNumber: caller, wordsNumber }: { callerNumber: number; wordsNumber: number },
  ): void {
    if (value >= supportMin) {
      this.#support(value, wordsNumber)
      this.#callers.add(caller)
    }
    if (value > this.#first) {
      if (caller !== this.#firstCaller) this.#ofOther = this.#first
      this.#second = this.#first
      this.#first = value
      this.#firstCaller = caller
      return
    }
    this.#second = Math.max(this.#second, value)
    if (caller !== this.#firstCaller) this.#ofOther = Math.max(this.#ofOther, value)
  }

  /** A repeated text supports only requests that are nearly the same, because for others it is one piece of evidence. */
  #support(value: number, wordsNumber: number): void {
    if (value < sameTextMin && this.#counted.has(wordsNumber)) return
    this.#counted.add(wordsNumber)
    this.#count += 1
  }

  /**
   * @param callersMin number of callers with similar examples, without which there is no evidence
   * @param needed number of similar examples that must support each other (`supportersNeeded`)
   */
  evidence(callersMin: number, needed: number): number {
    const areFew = needed > 2
    if (areFew && this.#count < needed) return 0
    if (callersMin < 2) return supportedEvidence(this.#first, this.#second)
    const evidence = supportedEvidence(this.#first, this.#ofOther)
    // Where two examples suffice, the one of another caller is counted by its similarity alone.
    if (!areFew && callersMin === 2) return evidence
    const callers = this.#callers.size
    return callers < callersMin ? 0 : trustInCallers(callers) * evidence
  }
}
