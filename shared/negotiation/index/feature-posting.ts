import { larger } from './agent-values.ts'

/** The agents whose training examples or own words contain a feature. */
export class FeaturePosting {
  /** The agents' numbers. */
  agents = new Int32Array(2)
  /**
   * Weight of the agent's examples with the feature: negative for failures, 0 if only the agent's own words
   * contain it.
   */
  held = new Float64Array(2)
  /** Impact of the feature in the agent's own words. */
  own = new Float64Array(2)
  /** Weight of the feature in the agent's typical texts. */
  typical = new Float64Array(2)
  length = 0
  /** Total weight of all agents' positive examples with the feature. */
  share = 0
  /** Number of agents whose own words contain the feature. */
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
    this.share = Math.max(0, this.share - Math.max(0, this.held[at] ?? 0))
    if ((this.own[at] ?? 0) > 0) this.owners -= 1
    this.length -= 1
    for (const values of [this.agents, this.held, this.own, this.typical]) {
      values[at] = values[this.length] ?? 0
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
