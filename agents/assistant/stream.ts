import { createParser } from 'eventsource-parser'
import { z } from 'zod'
import type { Spent } from './chat-completions.ts'
import { ChatFailure } from './failure.ts'
import type { Silence } from './silence.ts'

/** Maximum size of one event, and of the whole stream of an answer. */
const maxEventCharacters = 1_000_000
const maxStreamBytes = 32 * 1024 * 1024

export interface Chunk {
  text?: string
  spent?: Spent
  finish?: string
}

const tokens = z.int().min(0).catch(0)
const chunkSchema = z.object({
  choices: z
    .array(
      z.object({
        delta: z.object({ content: z.string().nullish() }).nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
  usage: z.object({ prompt_tokens: tokens, completion_tokens: tokens }).nullish(),
  error: z.unknown().optional(),
})

/**
 * Parses the events of a streamed chat completion. A stream without an end marker counts as interrupted.
 *
 * @throws ChatFailure if the response is not an event stream, is malformed or too large, reports an error or is cut off
 */
export async function* readChunks(response: Response, silence: Silence): AsyncGenerator<Chunk> {
  const type = response.headers.get('content-type') ?? ''
  if (response.body === null || !/^text\/event-stream\b/i.test(type)) {
    throw new ChatFailure('The model endpoint does not stream its answer.')
  }
  const events: string[] = []
  let overflow = false
  const parser = createParser({
    maxBufferSize: maxEventCharacters,
    onEvent: ({ data }) => events.push(data),
    onError: ({ type }) => {
      overflow ||= type === 'max-buffer-size-exceeded'
    },
  })
  let bytes = 0
  let finished = false
  const decoder = new TextDecoder()
  for await (const piece of response.body) {
    silence.heard()
    bytes += piece.byteLength
    parser.feed(decoder.decode(piece, { stream: true }))
    if (overflow || bytes > maxStreamBytes)
      throw new ChatFailure('The answer of the model endpoint is too large.')
    for (const data of events.splice(0)) {
      if (data.trim() === '[DONE]') return
      const chunk = parseChunk(data)
      finished ||= chunk.finish !== undefined
      yield chunk
    }
  }
  if (!finished) throw new ChatFailure('The model endpoint broke off its answer.')
}

function parseChunk(data: string): Chunk {
  const parsed = chunkSchema.safeParse(parseJson(data))
  if (!parsed.success) throw new ChatFailure('The answer of the model endpoint is malformed.')
  const { choices, usage, error } = parsed.data
  if (error !== undefined && error !== null)
    throw new ChatFailure('The model endpoint reported an error in its answer.')
  const choice = choices?.[0]
  return {
    ...(typeof choice?.delta?.content === 'string' ? { text: choice.delta.content } : {}),
    ...(typeof choice?.finish_reason === 'string' ? { finish: choice.finish_reason } : {}),
    ...(usage ? { spent: { inputTokens: usage.prompt_tokens, outputTokens: usage.completion_tokens } } : {}),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
