/** Which agents with lessons have to do with a feature of texts, and how much. */
export class LessonPosting {
  /** Numbers of the agents. */
  pupils = new Int32Array(2)
  /** Weight of the lessons that hold the feature; negative: they went badly; 0: the agent's own words alone hold it. */
  held = new Float64Array(2)
  /** How much the agent's own words are about it. */
  own = new Float64Array(2)
  /** How much its usual texts are. */
  usual = new Float64Array(2)
  length = 0
  /** Weight of the lessons of all agents that hold it. */
  share = 0
  /** Agents whose own words hold it. */
  owners = 0

  add(pupil: number, held: number, own: number, usual: number): void {
    if (this.length === this.pupils.length) this.#grow()
    this.pupils[this.length] = pupil
    this.held[this.length] = held
    this.own[this.length] = own
    this.usual[this.length] = usual
    this.length += 1
    this.share += Math.max(0, held)
    if (own > 0) this.owners += 1
  }

  remove(pupil: number): void {
    const at = this.pupils.subarray(0, this.length).indexOf(pupil)
    if (at < 0) return
    this.share = Math.max(0, this.share - Math.max(0, this.held[at] as number))
    if ((this.own[at] as number) > 0) this.owners -= 1
    this.length -= 1
    for (const values of [this.pupils, this.held, this.own, this.usual]) {
      values[at] = values[this.length] as number
    }
  }

  #grow(): void {
    const size = this.length * 2
    const pupils = new Int32Array(size)
    pupils.set(this.pupils)
    this.pupils = pupils
    this.held = larger(this.held, size)
    this.own = larger(this.own, size)
    this.usual = larger(this.usual, size)
  }
}

/** The same numbers with room for so many. */
export function larger(values: Float64Array, size: number): Float64Array<ArrayBuffer> {
  const all = new Float64Array(size)
  all.set(values)
  return all
}
