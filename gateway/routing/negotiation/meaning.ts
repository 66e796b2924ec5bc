import { backgroundTexts } from '@parley/encoder/background'
import type { AgentIndex, RankOptions } from '@parley/negotiation/index/agent-index'
import { listOf, textsOf, vectorsOf } from '@parley/negotiation/index/agent-texts'
import { Embeddings, type EmbeddingsOptions } from '@parley/negotiation/index/embeddings'
import { RequestMeaning, type TextEmbedder } from '@parley/negotiation/index/request-meaning'
import { vectorText } from '@parley/negotiation/index/vector-store'
import type { Offer } from '@parley/negotiation/score/offer'
import type { NegotiationRequest } from '@parley/negotiation/score/request'
import { needsOf } from '@parley/negotiation/words/needs'

/** The endpoint of EMBEDDINGS_URL as an encoder. */
export const openEmbeddings = async (options: EmbeddingsOptions): Promise<TextEmbedder> =>
  new Embeddings({ ...options, background: await backgroundTexts() })

/** The sentence vectors of all agents and of requests. */
export class Meaning {
  readonly #index: Pick<AgentIndex, 'setVectors'>
  readonly #encoder: TextEmbedder
  readonly #requests: RequestMeaning
  /** Agents are embedded one after another to limit the load. */
  #turn: Promise<void> = Promise.resolve()
  readonly #newest = new Map<string, Offer>()

  constructor(index: Pick<AgentIndex, 'setVectors'>, encoder: TextEmbedder) {
    this.#index = index
    this.#encoder = encoder
    this.#requests = new RequestMeaning(encoder)
  }

  /** Schedules an agent's embedding. Until it is done, the agent is ranked by words only. */
  note(id: string, offer: Offer): void {
    const waits = this.#newest.has(id)
    this.#newest.set(id, offer)
    if (!waits) this.#turn = this.#turn.then(() => this.#embed(id))
  }

  /** Resolves when all scheduled agents are embedded. */
  ready(): Promise<void> {
    return this.#turn
  }

  /** Never rejects. Returns the reason if there are no vectors. */
  async of({ taskSummary, taskDetails = '' }: NegotiationRequest): Promise<RankOptions> {
    const found = await this.#requests.of(`${taskSummary}\n${taskDetails}`, needsOf)
    if (found === undefined) return {}
    return 'failed' in found ? { withoutEmbeddings: found.failed } : { meaning: found }
  }

  /** The vector of a text's instruction for a training example. Undefined if there is none. */
  async vectorOf(text: string): Promise<string | undefined> {
    const vector = await this.#requests.vectorOf(text)
    return vector && vectorText(vector)
  }

  async #embed(id: string): Promise<void> {
    const offer = this.#newest.get(id)
    this.#newest.delete(id)
    if (offer === undefined) return
    const texts = textsOf(offer)
    const found = await this.#encoder.embed(listOf(texts), false)
    if ('vectors' in found) this.#index.setVectors(id, vectorsOf(texts, found.vectors))
  }
}
