/** The best so far, by score and then by slug. */
export interface Scored {
  row: number
  slug: string
  score: number
}

export class Best {
  readonly #limit: number
  readonly #scored: Scored[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Best first. */
  get scored(): readonly Scored[] {
    return this.#scored
  }

  /** The last that has a place, once all places are taken. */
  get last(): Scored | undefined {
    return this.#scored.length < this.#limit ? undefined : this.#scored[this.#limit - 1]
  }

  /** Whether it would have a place. */
  takes(score: number, slug: string): boolean {
    if (this.#limit === 0) return false
    const { last } = this
    return last === undefined || score > last.score || (score === last.score && slug < last.slug)
  }

  put(scored: Scored): void {
    let at = this.#scored.length
    while (at > 0 && isBefore(scored, this.#scored[at - 1] as Scored)) at -= 1
    this.#scored.splice(at, 0, scored)
    if (this.#scored.length > this.#limit) this.#scored.pop()
  }
}

const isBefore = (a: Scored, b: Scored) => a.score > b.score || (a.score === b.score && a.slug < b.slug)
