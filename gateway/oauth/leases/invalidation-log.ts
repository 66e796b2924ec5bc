/** Holders that lag behind by more tags than this drop all responses. */
const tagsMax = 10_000
/** An answer with more tags than this would exceed the holder's limit on its size. */
const answerTagsMax = 100

/** The latest invalidations by number. */
export class InvalidationLog {
  #last = 0
  /** The invalidations after number `#from`. */
  readonly #tags: (readonly string[])[] = []
  #from = 0
  #count = 0

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

  /** Returns the tags of all invalidations after the given one, or `all` if they are unknown or too many. */
  since(seq: number): 'all' | string[] {
    if (seq < this.#from) return 'all'
    const tags = new Set<string>()
    for (const added of this.#tags.slice(seq - this.#from)) {
      for (const tag of added) tags.add(tag)
      if (tags.size > answerTagsMax) return 'all'
    }
    return [...tags]
  }
}
