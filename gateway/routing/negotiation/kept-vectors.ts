import { createHash } from 'node:crypto'
import type { Log } from '@parley/kit/process/log'
import type { TextEmbedder } from '@parley/negotiation/index/request-meaning'
import { packed, unpacked } from '@parley/negotiation/index/vector-store'
import type { RoutingStore } from '../store/routing-store.ts'

export interface KeptVectorsOptions {
  encoder: Pick<TextEmbedder, 'embed' | 'model'>
  store: Pick<RoutingStore, 'sentenceVectors' | 'saveSentenceVectors' | 'markSentenceVectors'>
  log: Pick<Log, 'warn'>
}

/** Vectors by the keys of their texts. */
export type VectorsByKey = ReadonlyMap<string, Float32Array>

/** How long the store is not used after it has failed, so that each agent does not wait for its timeout. */
const pauseMs = 60_000
/** Vectors that were used within this time are not marked again, so that each is written at most once a week. */
const markedForMs = 7 * 24 * 60 * 60 * 1000
const marksTogether = 1000

/**
 * Embeds texts and keeps their vectors in the routing store, so that each text is embedded once by all gateways. The store contains a hash
 * of the model and the text, never the text. While the store fails, all texts are embedded.
 */
export class KeptVectors {
  readonly #options: KeptVectorsOptions
  #model: Promise<string | undefined> | undefined
  #pausedUntil = 0
  #hasFailed = false

  constructor(options: KeptVectorsOptions) {
    this.#options = options
  }

  /** The keys under which the vectors of the texts are stored, in the order of the texts. Never rejects. */
  async keysOf(texts: readonly string[]): Promise<string[]> {
    const model = await this.#readModel()
    return texts.map((text) => keyOf(model, text))
  }

  /** The stored vectors. Never rejects. */
  async find(keys: readonly string[]): Promise<Map<string, Float32Array>> {
    const stored = await this.#inStore((store) => store.sentenceVectors([...new Set(keys)]))
    const found = new Map<string, Float32Array>()
    for (const [key, bytes] of stored ?? []) {
      const vector = unpacked(bytes)
      if (vector !== undefined) found.set(key, vector)
    }
    return found
  }

  /** Embeds those of the texts whose vectors are not known, or returns the reason why it cannot. Never rejects. */
  async embed(
    texts: ReadonlyMap<string, string>,
    known: VectorsByKey,
  ): Promise<{ fresh: VectorsByKey } | { failed: string }> {
    const missing = [...texts].filter(([key]) => !known.has(key))
    if (missing.length === 0) return { fresh: new Map() }
    const encoded = await this.#options.encoder.embed(
      missing.map(([, text]) => text),
      false,
    )
    if ('failed' in encoded) return encoded
    return {
      fresh: new Map(missing.map(([key], place) => [key, encoded.vectors[place] as Float32Array])),
    }
  }

  /** Never rejects. */
  async save(vectors: VectorsByKey): Promise<void> {
    if (vectors.size === 0) return
    const bytes = new Map([...vectors].map(([key, vector]) => [key, packed(vector)]))
    await this.#inStore((store) => store.saveSentenceVectors(bytes, Date.now()))
  }

  /** Marks vectors as used, so that they are not removed. Never rejects. */
  async mark(keys: Iterable<string>): Promise<void> {
    const all = [...new Set(keys)]
    const at = Date.now()
    for (let from = 0; from < all.length; from += marksTogether) {
      const some = all.slice(from, from + marksTogether)
      await this.#inStore((store) => store.markSentenceVectors(some, { at, before: at - markedForMs }))
    }
  }

  #readModel(): Promise<string | undefined> {
    this.#model ??= this.#options.encoder.model()
    return this.#model
  }

  /** Undefined if the store cannot be used. */
  async #inStore<T>(use: (store: KeptVectorsOptions['store']) => Promise<T>): Promise<T | undefined> {
    const { store, log } = this.#options
    if (Date.now() < this.#pausedUntil || (await this.#readModel()) === undefined) return undefined
    try {
      return await use(store)
    } catch (error) {
      this.#pausedUntil = Date.now() + pauseMs
      if (!this.#hasFailed)
        log.warn({ err: error }, 'cannot keep sentence vectors; the texts of agents are embedded again')
      this.#hasFailed = true
      return undefined
    }
  }
}

const keyOf = (model: string | undefined, text: string): string =>
  createHash('sha256')
    .update(JSON.stringify([model, text]))
    .digest('base64url')
