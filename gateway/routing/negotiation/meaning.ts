import { setImmediate as nextTurn } from 'node:timers/promises'
import { backgroundTexts } from '@parley/encoder/background'
import type { AgentIndex, RankOptions } from '@parley/negotiation/index/agent-index'
import { type AgentTexts, listOf, textsOf, vectorsOf } from '@parley/negotiation/index/agent-texts'
import { Embeddings, type EmbeddingsOptions } from '@parley/negotiation/index/embeddings'
import { RequestMeaning, type TextEmbedder } from '@parley/negotiation/index/request-meaning'
import { vectorText } from '@parley/negotiation/index/vector-store'
import type { Offer } from '@parley/negotiation/score/offer'
import type { NegotiationRequest } from '@parley/negotiation/score/request'
import { needsOf } from '@parley/negotiation/words/needs'
import { KeptVectors, type KeptVectorsOptions, type VectorsByKey } from './kept-vectors.ts'

/** The endpoint of EMBEDDINGS_URL as an encoder. */
export const openEmbeddings = async (options: EmbeddingsOptions): Promise<TextEmbedder> =>
  new Embeddings({ ...options, background: await backgroundTexts() })

export interface MeaningOptions {
  index: Pick<AgentIndex, 'setVectors'>
  encoder: TextEmbedder
  /** Keeps the vectors of agents' texts. */
  store: KeptVectorsOptions['store']
  log: KeptVectorsOptions['log']
}

/** An agent whose texts are embedded, with the key of each text (`KeptVectors.keysOf`). */
interface EmbeddedAgent {
  id: string
  texts: AgentTexts
  list: string[]
  keys: string[]
}

/** The vectors of agents with about this many texts are read from the store together. */
const textsTogether = 100
const day = 24 * 60 * 60 * 1000

/** The sentence vectors of all agents and of requests. */
export class Meaning implements Disposable {
  readonly #index: MeaningOptions['index']
  readonly #vectors: KeptVectors
  readonly #requests: RequestMeaning
  /** Agents are embedded one after another to limit the load. */
  #turn: Promise<void> = Promise.resolve()
  readonly #newest = new Map<string, Offer>()
  /** The keys of the texts of each agent that is embedded or has vectors. */
  readonly #keys = new Map<string, string[]>()
  #markedAt = 0

  constructor({ index, encoder, store, log }: MeaningOptions) {
    this.#index = index
    this.#vectors = new KeptVectors({ encoder, store, log })
    this.#requests = new RequestMeaning(encoder)
  }

  /** Agents that have not been embedded yet stay without vectors. */
  [Symbol.dispose](): void {
    this.#newest.clear()
    this.#keys.clear()
  }

  /** Schedules an agent's embedding. Until it is done, the agent is ranked by words only. */
  note(id: string, offer: Offer): void {
    const waits = this.#newest.size > 0
    this.#newest.set(id, offer)
    if (!waits) this.#turn = this.#turn.then(() => this.#embedAll())
  }

  /** Forgets an agent that was removed from the index. */
  remove(id: string): void {
    this.#newest.delete(id)
    this.#keys.delete(id)
  }

  /** Resolves when all scheduled agents are embedded. */
  ready(): Promise<void> {
    return this.#turn
  }

  /** Marks the stored vectors of all agents as used, once a day. Never rejects. */
  async markUsed(): Promise<void> {
    if (Date.now() < this.#markedAt + day) return
    this.#markedAt = Date.now()
    await this.#vectors.mark([...this.#keys.values()].flat())
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

  async #embedAll(): Promise<void> {
    while (this.#newest.size > 0) {
      const agents = await this.#next()
      const known = await this.#vectors.find(agents.flatMap(({ keys }) => keys))
      for (const agent of agents) await this.#embed(agent, known)
      // With the embedded store, no step waits if all vectors are known, and requests would not be answered.
      await nextTurn()
    }
  }

  /** Takes the agents that are embedded next. */
  async #next(): Promise<EmbeddedAgent[]> {
    const agents: EmbeddedAgent[] = []
    let count = 0
    for (const [id, offer] of this.#newest) {
      if (count >= textsTogether) break
      const texts = textsOf(offer)
      const list = listOf(texts)
      const keys = await this.#vectors.keysOf(list)
      // The agent was changed or removed meanwhile.
      if (this.#newest.get(id) !== offer) continue
      this.#newest.delete(id)
      this.#keys.set(id, keys)
      agents.push({ id, texts, list, keys })
      count += list.length
    }
    return agents
  }

  async #embed(agent: EmbeddedAgent, known: VectorsByKey): Promise<void> {
    const { id, texts, list, keys } = agent
    if (!this.#isCurrent(agent)) return
    const found = await this.#vectors.embed(new Map(keys.map((key, at) => [key, list[at] ?? ''])), known)
    if ('failed' in found || !this.#isCurrent(agent)) return
    const { fresh } = found
    const vectors = keys.map((key) => (fresh.get(key) ?? known.get(key)) as Float32Array)
    this.#index.setVectors(id, vectorsOf(texts, vectors))
    await this.#vectors.save(fresh)
  }

  /** Whether the agent was neither changed nor removed since. */
  #isCurrent({ id, keys }: EmbeddedAgent): boolean {
    return this.#keys.get(id) === keys && !this.#newest.has(id)
  }
}
