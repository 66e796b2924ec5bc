import { withoutIdentifiers } from '../words/identifiers.ts'
import { taskTextOf } from '../words/instruction.ts'
import { inEnglish } from '../words/translation.ts'
import type { QueryMeaning } from './skill-vectors.ts'
import { cosineAt, VectorStore } from './vector-store.ts'

export type Encoded = { vectors: Float32Array[] } | { failed: string }

/** Embeds texts as vectors of length 1: the encoder of this package's deployment, or an endpoint. */
export interface TextEmbedder {
  /**
   * Returns vectors in the order of the texts, or the reason why there are none. Never rejects.
   * @param soon whether a request waits for the vectors. Default: yes
   */
  embed(texts: readonly string[], soon?: boolean): Promise<Encoded>
  /**
   * Identifies the model: vectors are compared only with those of the same model. Undefined if it cannot be determined. Never rejects.
   */
  model(): Promise<string | undefined>
  /** The vectors of unrelated skills, to which requests are compared; empty if there are none. */
  background(): Promise<Float32Array[]>
}

/** Number of the nearest unrelated skills in the mean. */
const nearest = 10
const partsMax = 4

/** Embeds requests: their instruction and its parts, in English. */
export class RequestMeaning {
  readonly #encoder: TextEmbedder
  #background: Promise<VectorStore> | undefined

  constructor(encoder: TextEmbedder) {
    this.#encoder = encoder
  }

  /**
   * Returns the vectors of a text's instruction, undefined if the text has no words, or the reason why there are none. Never rejects.
   * @param partsOf splits an instruction into the parts that each ask for work
   */
  async of(
    text: string,
    partsOf: (instruction: string) => readonly string[],
  ): Promise<QueryMeaning | { failed: string } | undefined> {
    const instruction = instructionOf(text)
    if (instruction === undefined) return undefined
    const parts = partsOf(instruction)
    const several = parts.length > 1 ? parts.slice(0, partsMax) : []
    const [encoded, background] = await Promise.all([
      this.#encoder.embed([instruction, ...several].map(embedded)),
      (this.#background ??= this.#readBackground()),
    ])
    if ('failed' in encoded) return encoded
    const [whole, ...rest] = encoded.vectors
    return whole === undefined
      ? undefined
      : { whole, parts: rest, background: backgroundOf(whole, background) }
  }

  /** The vector of a text's instruction. Undefined if it has no words or cannot be embedded. */
  async vectorOf(text: string): Promise<Float32Array | undefined> {
    const instruction = instructionOf(text)
    if (instruction === undefined) return undefined
    const encoded = await this.#encoder.embed([embedded(instruction)])
    return 'failed' in encoded ? undefined : encoded.vectors[0]
  }

  async #readBackground(): Promise<VectorStore> {
    const store = new VectorStore()
    for (const vector of await this.#encoder.background()) store.add(vector)
    return store
  }
}

/** The text of which a vector is made. */
const embedded = (text: string) => inEnglish(withoutIdentifiers(text).trim())

/** The instruction of a text, or undefined if it has no words. */
function instructionOf(text: string): string | undefined {
  const instruction = taskTextOf(text).instruction.trim()
  return /[\p{L}\p{N}]/u.test(instruction) ? instruction : undefined
}

/** The mean cosine of the nearest unrelated skills. */
function backgroundOf(vector: Float32Array, background: VectorStore): number {
  if (background.size === 0) return 0
  const cosines = background.cosines(vector)
  const top = new Float64Array(nearest).fill(-1)
  for (let slot = 0; slot < background.size; slot += 1) {
    const value = cosineAt(cosines, slot)
    if (value <= (top[nearest - 1] ?? 0)) continue
    let at = nearest - 1
    for (; at > 0 && (top[at - 1] ?? 0) < value; at -= 1) top[at] = top[at - 1] ?? 0
    top[at] = value
  }
  let sum = 0
  for (const value of top) sum += value
  return sum / nearest
}
