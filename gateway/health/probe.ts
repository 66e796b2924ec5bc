import { boundedText } from '@parley/kit/net/bounded-text'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import type { Dispatcher } from 'undici'
import type { AgentEntry } from '../registry/entry.ts'

export interface ProbeOptions {
  dispatcher: Dispatcher
  /** Time limit for the whole response. Defaults to 5 s. */
  timeoutMs?: number
  /** Maximum size of the response body. Defaults to 1 MiB. */
  answerMaxBytes?: number
  headers?: Record<string, string>
}

/**
 * Returns whether the agent is reachable. It is if `/health` responds with 200 or, for an agent without `/health`, if it
 * serves its card. Never rejects.
 */
export async function probeAgent(
  entry: Pick<AgentEntry, 'url'>,
  signal: AbortSignal,
  options: ProbeOptions,
): Promise<boolean> {
  try {
    const health = await readText(`${entry.url}/health`, signal, options)
    if (health.status === 200) return true
    if (health.status !== 404 && health.status !== 405) return false
    const card = await readText(`${entry.url}/.well-known/agent.json`, signal, options)
    return card.status === 200 && typeof jsonObjectOf(card.text)?.['name'] === 'string'
  } catch {
    return false
  }
}

/**
 * Reads a JSON object from an agent within limits on time and size. Redirects are not followed.
 * @throws Error if the response is not a 200 that contains an object
 */
export async function readJson(url: string, signal: AbortSignal, options: ProbeOptions): Promise<JsonObject> {
  const { status, text } = await readText(url, signal, options).catch((cause: unknown) => {
    throw new Error(`${url} could not be read: ${String(cause)}`, { cause })
  })
  const object = status === 200 ? jsonObjectOf(text) : undefined
  if (object === undefined) throw new Error(`${url} returned ${status} without a JSON object`)
  return object
}

/** Reads a text within limits on time and size. Redirects are not followed. @throws Error if there is no answer */
export async function readText(url: string, signal: AbortSignal, options: ProbeOptions) {
  const { timeoutMs = 5000 } = options
  const ended = new AbortController()
  const end = () => ended.abort()
  // `AbortSignal.timeout` would keep a timer alive for the full time after each of thousands of fast probes.
  const timer = setTimeout(end, timeoutMs)
  signal.addEventListener('abort', end)
  try {
    signal.throwIfAborted()
    return await read(url, ended.signal, options)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}

async function read(url: string, signal: AbortSignal, options: ProbeOptions) {
  const { dispatcher, answerMaxBytes = 1024 * 1024, headers } = options
  const { origin, pathname, search } = new URL(url)
  const response = await dispatcher.request({
    origin,
    path: pathname + search,
    method: 'GET',
    headers: { accept: 'application/json', ...headers },
    signal,
  })
  const { etag } = response.headers
  return {
    status: response.statusCode,
    text: await boundedText(response.body, answerMaxBytes),
    etag: typeof etag === 'string' && etag.length <= 256 ? etag : undefined,
  }
}
