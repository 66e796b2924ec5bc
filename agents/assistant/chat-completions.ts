import { setTimeout as wait } from 'node:timers/promises'
import type { ChatMessage } from './conversation.ts'
import { endpointFailed, failureOfStatus } from './failure.ts'
import type { AssistantSettings } from './settings.ts'
import { type Silence, watchSilence } from './silence.ts'
import { readChunks } from './stream.ts'

/** The token usage that the endpoint reports. */
export interface Spent {
  inputTokens: number
  outputTokens: number
}

export type Piece = { text: string } | { spent: Spent } | { cut: 'by-the-model' | 'by-us' }

/** Maximum length of an answer, in characters. */
export const maxAnswerCharacters = 200_000
/** Maximum delay before a retry if the endpoint is busy. */
const maxRetryAfterMs = 10_000

type Endpoint = Pick<AssistantSettings, 'baseUrl' | 'apiKey' | 'model' | 'timeoutMs'>

/**
 * Streams one response of `POST {baseUrl}/chat/completions`. A 429 with a retry delay is retried once.
 *
 * @throws ChatFailure with a message for the caller that contains neither the key nor text from the endpoint;
 * the reason of `signal` after it is aborted
 */
export async function* chat(
  endpoint: Endpoint,
  messages: ChatMessage[],
  signal: AbortSignal,
): AsyncGenerator<Piece> {
  const silence = watchSilence(endpoint.timeoutMs, signal)
  try {
    const response = await ask(endpoint, messages, silence)
    silence.heard()
    let characters = 0
    for await (const chunk of readChunks(response, silence)) {
      if (chunk.spent !== undefined) yield { spent: chunk.spent }
      if (chunk.text !== undefined && chunk.text !== '') {
        const fits = chunk.text.slice(0, maxAnswerCharacters - characters)
        characters += fits.length
        if (fits !== '') yield { text: fits }
        if (fits.length < chunk.text.length) return yield { cut: 'by-us' }
      }
      if (chunk.finish === 'length') yield { cut: 'by-the-model' }
    }
  } catch (error) {
    signal.throwIfAborted()
    throw endpointFailed(error, silence.broken())
  } finally {
    silence.stop()
  }
  return undefined
}

async function ask(endpoint: Endpoint, messages: ChatMessage[], silence: Silence): Promise<Response> {
  const { signal } = silence
  const first = await post(endpoint, messages, signal)
  if (first.ok) return first
  const waitMs = retryAfterOf(first)
  await first.body?.cancel()
  if (waitMs === undefined) throw failureOfStatus(first.status)
  silence.pause()
  await wait(waitMs, undefined, { signal })
  silence.heard()
  const second = await post(endpoint, messages, signal)
  if (second.ok) return second
  await second.body?.cancel()
  throw failureOfStatus(second.status)
}

async function post(
  { baseUrl, apiKey, model }: Endpoint,
  messages: ChatMessage[],
  signal: AbortSignal,
): Promise<Response> {
  return fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    // A redirect could send the key to another host.
    redirect: 'error',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({ model, messages, stream: true, stream_options: { include_usage: true } }),
    signal,
  })
}

/** Milliseconds to wait before the single retry, or undefined for no retry. */
function retryAfterOf(response: Response): number | undefined {
  const header = response.headers.get('retry-after')
  if (response.status !== 429 || header === null) return undefined
  const ms = /^\d+(?:\.\d+)?$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return ms <= maxRetryAfterMs ? Math.max(0, ms) : undefined
}
