import type { AgentIndex, RankOptions } from '@parley/negotiation/index/agent-index'
import type { Embeddings } from '@parley/negotiation/index/embeddings'
import type { Offer, OfferedSkill } from '@parley/negotiation/score/offer'
import type { NegotiationRequest } from '@parley/negotiation/score/request'

/** Embeddings of all skills and of negotiation requests, fetched from the operator's endpoint. */
export class SkillEmbeddings {
  readonly #index: Pick<AgentIndex, 'setVectors'>
  readonly #embeddings: Pick<Embeddings, 'embed'>
  /** Agents are embedded one after another to limit the load on the endpoint. */
  #turn: Promise<void> = Promise.resolve()
  readonly #newest = new Map<string, Offer>()

  constructor(index: Pick<AgentIndex, 'setVectors'>, embeddings: Pick<Embeddings, 'embed'>) {
    this.#index = index
    this.#embeddings = embeddings
  }

  /** Schedules an agent's embedding. Until it arrives, the agent is ranked by words only. */
  note(id: string, offer: Offer): void {
    const waits = this.#newest.has(id)
    this.#newest.set(id, offer)
    if (!waits) this.#turn = this.#turn.then(() => this.#embed(id))
  }

  /** Never rejects. Returns the reason if there is no vector. */
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
