import { ConnectionError } from '@parley/client/internal/rpc-error'
import { BodyTooLarge, boundedText } from '@parley/kit/net/bounded-text'
import { z } from 'zod'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import { oneLine } from '../terminal/printable.ts'

const answerMaxBytes = 4 * 1024 * 1024
const registryTypes = ['application/ai-registry+json', 'application/ai-registry']
/** The second path is that of ARD 0.9. */
const manifestPaths = ['/.well-known/ard.json', '/.well-known/ai-catalog.json']

const manifest = z.object({
  entries: z.array(z.looseObject({ type: z.string().optional(), url: z.string().optional() }).catch({})),
})
const fault = z.object({ message: z.string() })

interface Answer {
  status: number
  json: unknown
}

/**
 * Searches an ARD server without a token. The address is the base address of its API, or a server with a manifest that names it.
 * @throws UsageError, CommandFailed, ConnectionError
 */
export async function searchAt(at: string, question: object): Promise<unknown> {
  const address = httpUrl(at)
  const base = withSlash(address)
  const direct = await search(base, question)
  if (direct.status === 200) return direct.json
  // A server without a search at this address may name one in its manifest.
  if (![404, 405, 501].includes(direct.status)) throw refused(base, direct)
  for (const path of manifestPaths) {
    const { status, json } = await request(new URL(path, address), { method: 'GET' })
    const entries = status === 200 ? (manifest.safeParse(json).data?.entries ?? []) : []
    const registry = entries.find(({ type = '' }) => registryTypes.includes(type))?.url
    if (registry === undefined) continue
    const found = withSlash(httpUrl(registry))
    const answer = await search(found, question)
    if (answer.status === 200) return answer.json
    throw refused(found, answer)
  }
  throw new CommandFailed(
    `${address.origin} has no search of ARD: ${base.pathname}search answers HTTP ${direct.status}, and no manifest names one. Give the base address of its API.`,
  )
}

function search(base: URL, question: object): Promise<Answer> {
  const headers = { 'content-type': 'application/json' }
  const path = 'search'
  return request(new URL(path, base), { method: 'POST', headers, body: JSON.stringify(question) })
}

function refused(base: URL, { status, json }: Answer): CommandFailed {
  const message = fault.safeParse(json).data?.message
  const why = message === undefined ? '' : `: ${oneLine(message, 300)}`
  return new CommandFailed(`${oneLine(base.href)} answers HTTP ${status}${why}`)
}

async function request(
  url: URL,
  init: { method: string; headers?: Record<string, string>; body?: string },
): Promise<Answer> {
  try {
    const response = await fetch(url, {
      ...init,
      headers: { ...init.headers, accept: 'application/json' },
      signal: AbortSignal.timeout(30_000),
    })
    return { status: response.status, json: parsed(await boundedText(response.body, answerMaxBytes)) }
  } catch (thrown) {
    if (thrown instanceof BodyTooLarge) throw new CommandFailed(`${url.href}: ${thrown.message}.`)
    throw new ConnectionError(url.href, thrown)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function httpUrl(text: string): URL {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`"${oneLine(text)}" is not the http or https address of an ARD server.`)
  return url
}

function withSlash(url: URL): URL {
  const base = new URL(url)
  base.pathname = base.pathname.replace(/\/?(?:search)?\/?$/, '/')
  return base
}
