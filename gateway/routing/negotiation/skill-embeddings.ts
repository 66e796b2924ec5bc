import type { AgentIndex, RankOptions } from '@parley/negotiation/index/agent-index'
import type { Embeddings } from '@parley/negotiation/index/embeddings'
import type { Offer, OfferedSkill } from '@parley/negotiation/score/offer'
import type { NegotiationRequest } from '@parley/negotiation/score/request'

/** Nearness in meaning, where the operator has an endpoint for it: vectors of all skills, and of what is asked. */
export class SkillEmbeddings {
  readonly #index: Pick<AgentIndex, 'setVectors'>
  readonly #embeddings: Pick<Embeddings, 'embed'>
  /** One agent after another: an endpoint is not flooded when a thousand agents come at once. */
  #turn: Promise<void> = Promise.resolve()
  readonly #newest = new Map<string, Offer>()

  constructor(index: Pick<AgentIndex, 'setVectors'>, embeddings: Pick<Embeddings, 'embed'>) {
    this.#index = index
    this.#embeddings = embeddings
  }

  /** The agent's words are new: until their vectors are here it is ranked by words alone. */
  note(id: string, offer: Offer): void {
    const waits = this.#newest.has(id)
    this.#newest.set(id, offer)
    if (!waits) this.#turn = this.#turn.then(() => this.#embed(id))
  }

  /** Never rejects; says why where there is no vector. */
  async of({ taskSummary, taskDetails = '' }: NegotiationRequest): Promise<RankOptions> {
    const text = `${taskSummary}\n${taskDetails}`.trim()
    if (text === '') return {}
    const found = await this.#embeddings.embed([text])
    if ('failed' in found) return { withoutEmbeddings: found.failed }
    const [queryVector] = found.vectors
    return queryVector === undefined ? {} : { queryVector }
  }

  async #embed(id: string): Promise<void> {
    const offer = this.#newest.get(id)
    this.#newest.delete(id)
    if (offer === undefined) return
    const found = await this.#embeddings.embed(offer.skills.map(textOf))
    if ('vectors' in found) this.#index.setVectors(id, found.vectors)
  }
}

function textOf({ name, description, tags, examples }: OfferedSkill): string {
  return [name, description, tags.join(', '), ...examples].filter((text) => text !== '').join('\n')
}
