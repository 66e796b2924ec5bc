import { createHash } from 'node:crypto'
import { BodyTooLarge, boundedText } from '@parley/kit/net/bounded-text'
import { z } from 'zod'
import type { Encoded, TextEmbedder } from './request-meaning.ts'

export interface EmbeddingsOptions {
  /** An OpenAI-compatible endpoint such as `https://host/v1/embeddings`, chosen by the operator. */
  url: string
  model: string
  key?: string
  /** Timeout of one request in milliseconds. Default 2,000. */
  timeoutMs?: number
  /** Maximum number of cached texts. Default 20,000. */
  keptMax?: number
  /** Skills of many kinds (`TextEmbedder.background`). Default: none. */
  background?: readonly string[]
}

const batchMax = 64
const charsMax = 8000
const answerMaxBytes = 32 * 1024 * 1024
const answer = z.object({
  data: z.array(z.object({ index: z.int().min(0), embedding: z.array(z.number()).min(1).max(8192) })),
})

/** Text embeddings, fetched from the operator's endpoint and cached by text. */
export class Embeddings implements TextEmbedder {
  readonly #options: EmbeddingsOptions
  readonly #kept = new Map<string, Float32Array>()

  constructor(options: EmbeddingsOptions) {
    this.#options = options
  }

  /** Returns vectors of length 1 in the order of the texts, or the reason why there are none. Never rejects. */
  async embed(texts: readonly string[]): Promise<Encoded> {
    const short = texts.map((text) => text.slice(0, charsMax) || ' ')
    const missing = [...new Set(short.filter((text) => !this.#kept.has(keyOf(text))))]
    const fresh = new Map<string, Float32Array>()
    try {
      for (let at = 0; at < missing.length; at += batchMax) {
        const batch = missing.slice(at, at + batchMax)
        const vectors = await this.#ask(batch)
        batch.forEach((text, place) => fresh.set(keyOf(text), vectors[place] as Float32Array))
      }
    } catch (error) {
      return { failed: reasonOf(error) }
    }
    const vectors = short.map(
      (text) => fresh.get(keyOf(text)) ?? (this.#kept.get(keyOf(text)) as Float32Array),
    )
    for (const [key, vector] of fresh) this.#keep(key, vector)
    return { vectors }
  }

  /** The URL and the name of the model, because another server may have another model of the same name. */
  async model(): Promise<string> {
    const { url, model } = this.#options
    return JSON.stringify([url, model])
  }

  /** Embeds the texts of `background`. Empty if the endpoint does not answer. */
  async background(): Promise<Float32Array[]> {
    const encoded = await this.embed(this.#options.background ?? [])
    return 'failed' in encoded ? [] : encoded.vectors
  }

  async #ask(input: readonly string[]): Promise<Float32Array[]> {
    const { url, model, key, timeoutMs = 2000 } = this.#options
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        'content-type': 'application/json',
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({ model, input, encoding_format: 'float' }),
    })
    if (!response.ok) {
      await response.body?.cancel()
      throw new Refused(`the embeddings endpoint answered ${response.status}`)
    }
    const { data } = answer.parse(JSON.parse(await boundedText(response.body, answerMaxBytes)))
    const vectors = input.map((_, place) => data.find(({ index }) => index === place)?.embedding)
    const length = vectors[0]?.length
    return vectors.map((vector) => {
      if (vector === undefined || vector.length !== length)
        throw new Refused('the embeddings endpoint omitted texts')
      return normal(vector)
    })
  }

  #keep(key: string, vector: Float32Array): void {
    const oldest = this.#kept.keys().next().value
    if (this.#kept.size >= (this.#options.keptMax ?? 20_000) && oldest !== undefined)
      this.#kept.delete(oldest)
    this.#kept.set(key, vector)
  }
}

class Refused extends Error {}

function reasonOf(error: unknown): string {
  if (error instanceof Refused) return error.message
  if (error instanceof BodyTooLarge) return 'the response of the embeddings endpoint is too large'
  if (error instanceof Error && error.name === 'TimeoutError') return 'the embeddings endpoint timed out'
  if (error instanceof z.ZodError || error instanceof SyntaxError)
    return 'the response of the embeddings endpoint is invalid'
  return 'the embeddings endpoint is unreachable'
}

function normal(vector: readonly number[]): Float32Array {
  const length = Math.hypot(...vector)
  return Float32Array.from(vector, (value) => (length === 0 ? 0 : value / length))
}

const keyOf = (text: string): string => createHash('sha256').update(text).digest('base64')
