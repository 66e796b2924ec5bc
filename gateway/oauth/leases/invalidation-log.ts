/** Holders that lag behind by more tags than this drop all responses. */
const tagsMax = 10_000
/** An answer with more tags than this would exceed the holder's limit on its size. */
const answerTagsMax = 100

/** The latest invalidations by number. */
export class InvalidationLog {
  #last: number
  /** The tags of the invalidations after number `#from`. */
  readonly #tags: (readonly string[])[] = []
  #from: number
  #count = 0

  constructor(last = 0) {
    this.#last = last
    this.#from = last
  }

  get last(): number {
    return this.#last
  }

  add(tags: readonly string[]): void {
    this.#last += 1
    this.#tags.push(tags)
    this.#count += tags.length
    while (this.#count > tagsMax) {
      this.#count -= this.#tags.shift()?.length ?? 0
      this.#from += 1
    }
  }

  /** Forgets all invalidations up to this number, so that holders which have not applied it drop all responses. */
  skipTo(seq: number): void {
    this.#tags.length = 0
    this.#count = 0
    this.#last = seq
    this.#from = seq
  }

  /** Returns the tags of all invalidations after the given one, or `all` if they are unknown or too many. */
  since(seq: number): 'all' | string[] {
    if (seq < this.#from) return 'all'
    const tags = new Set<string>()
    for (const added of this.#tags.slice(seq - this.#from)) {
      for (const tag of added) tags.add(tag)
      if (tags.size > answerTagsMax || tags.has(allTags)) return 'all'
    }
    return [...tags]
  }
}

/** An invalidation with this tag concerns all responses. */
export const allTags = '*'
