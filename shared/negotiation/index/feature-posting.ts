/** Which agents with examples have to do with a feature of texts, and how much. */
export class FeaturePosting {
  /** Numbers of the agents. */
  agents = new Int32Array(2)
  /** Weight of the examples that hold the feature; negative: they went badly; 0: the agent's own words alone hold it. */
  held = new Float64Array(2)
  /** How much the agent's own words are about it. */
  own = new Float64Array(2)
  /** How much its typical texts are. */
  typical = new Float64Array(2)
  length = 0
  /** Weight of the examples of all agents that hold it. */
  share = 0
  /** Agents whose own words hold it. */
  owners = 0

  add(model: number, held: number, own: number, typical: number): void {
    if (this.length === this.agents.length) this.#grow()
    this.agents[this.length] = model
    this.held[this.length] = held
    this.own[this.length] = own
    this.typical[this.length] = typical
    this.length += 1
    this.share += Math.max(0, held)
    if (own > 0) this.owners += 1
  }

  remove(model: number): void {
    const at = this.agents.subarray(0, this.length).indexOf(model)
    if (at < 0) return
    this.share = Math.max(0, this.share - Math.max(0, this.held[at] as number))
    if ((this.own[at] as number) > 0) this.owners -= 1
    this.length -= 1
    for (const values of [this.agents, this.held, this.own, this.typical]) {
      values[at] = values[this.length] as number
    }
  }

  #grow(): void {
    const size = this.length * 2
    const agents = new Int32Array(size)
    agents.set(this.agents)
    this.agents = agents
    this.held = larger(this.held, size)
    this.own = larger(this.own, size)
    this.typical = larger(this.typical, size)
  }
}

/** The same numbers with room for so many. */
export function larger(values: Float64Array, size: number): Float64Array<ArrayBuffer> {
  const all = new Float64Array(size)
  all.set(values)
  return all
}
