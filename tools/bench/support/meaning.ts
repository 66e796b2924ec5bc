import { SentenceEncoder } from '@parley/encoder/sentence-encoder'
import type { AgentIndex, RankOptions } from '@parley/negotiation/index/agent-index'
import { listOf, textsOf, vectorsOf } from '@parley/negotiation/index/agent-texts'
import { RequestMeaning } from '@parley/negotiation/index/request-meaning'
import type { AgentVectors } from '@parley/negotiation/index/skill-vectors'
import { vectorText } from '@parley/negotiation/index/vector-store'
import type { Offer } from '@parley/negotiation/score/offer'
import { needsOf } from '@parley/negotiation/words/needs'

/** The encoder with all vectors kept, so that a text is embedded once for all measurements. */
const encoder = new SentenceEncoder({ keptMax: 100_000 })
const requests = new RequestMeaning(encoder)
const known = new Map<string, RankOptions>()

/** How requests are ranked: by words only, or with the encoder. */
export type Mode = 'words' | 'meaning'

/** Embeds texts before they are ranked. @throws Error if the encoder does not run */
export async function prepare(texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    if (known.has(text)) continue
    const meaning = await requests.of(text, needsOf)
    if (meaning !== undefined && 'failed' in meaning) throw new Error(meaning.failed)
    known.set(text, meaning === undefined ? {} : { meaning })
  }
}

/** The options with which a prepared text is ranked. */
export const optionsFor = (text: string, mode: Mode): RankOptions =>
  mode === 'words' ? {} : (known.get(text) ?? {})

/** The vector of a prepared text, as training examples store it. */
export function exampleVector(text: string, mode: Mode): { vector?: string } {
  const { meaning } = optionsFor(text, mode)
  return meaning === undefined ? {} : { vector: vectorText(meaning.whole) }
}

/** The vectors of an agent's texts. @throws Error if the encoder does not run */
export async function vectorsFor(offer: Offer): Promise<AgentVectors> {
  const texts = textsOf(offer)
  const encoded = await encoder.embed(listOf(texts))
  if ('failed' in encoded) throw new Error(encoded.failed)
  return vectorsOf(texts, encoded.vectors)
}

/** Sets the vectors of an agent. @throws Error if the encoder does not run */
export async function embedAgent(index: AgentIndex, id: string, offer: Offer): Promise<void> {
  index.setVectors(id, await vectorsFor(offer))
}

export const closeEncoder = () => encoder[Symbol.asyncDispose]()
