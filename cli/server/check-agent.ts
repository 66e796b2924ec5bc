import { AgentClient } from '@parley/client/internal/client'
import { RpcError } from '@parley/client/internal/rpc-error'
import { DocumentFault, verifyDocument } from '@parley/kit/did/document'
import { boundedText } from '@parley/kit/net/bounded-text'
import { connectionFault } from '@parley/kit/net/connection-fault'
import { foreignCardPaths, isForeignCard } from '@parley/wire/codecs/foreign-card'
import { methodOf } from '@parley/wire/codecs/parley/methods'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { checkForeignAgent } from './check-foreign-agent.ts'

/** One line of `parley check`. `fix` suggests a fix and is absent if the check passed. */
export interface Finding {
  what: string
  fix?: string
  /** A remark that is not a fault. */
  note?: string
  /** The findings, if the check passed. */
  info?: string
  /** The result of trying an example of a skill at a gateway. */
  example?: TriedExample
}

/** Which agent of a gateway would get an example as a message that names no agent. */
export interface TriedExample {
  skill: string
  text: string
  /** The slug of the agent that would get it; null if none would. */
  winner: string | null
  /** The score of that agent, or the best score if no agent would get it. From 0 to 1. */
  score: number
  /** Whether the checked agent would get it. */
  wins: boolean
  ownScore: number
  /** False if `ownScore` is computed here, without what the gateway has learned. */
  ownScoreIsOfGateway: boolean
}

/** The agent as its card and its list of skills describe it, neither of which has been checked. */
export interface DescribedAgent {
  /** The address of the agent, without the path of its card. */
  base: string
  card: JsonObject
  /** The list of skills. */
  skills: unknown
}

export type ReadAnswer = (url: string, init: RequestInit) => Promise<Answer>

interface Answer {
  status: number
  headers: Headers
  json: JsonObject | undefined
}

const limitMs = 10_000
const answerMaxBytes = 1024 * 1024

/**
 * Checks an agent over HTTP, as a gateway and a caller would see it.
 * @param credential a credential that a user gave for this agent; agents of other vendors receive no other
 */
export async function checkAgent(
  url: string,
  token: string | undefined,
  credential?: string,
): Promise<{ findings: Finding[]; agent?: DescribedAgent }> {
  const base = url.replace(/\/\.well-known\/agent(-card)?\.json$/, '').replace(/\/+$/, '')
  const card = await get(`${base}${foreignCardPaths[0]}`).catch((error: Error) => error)
  if (card instanceof Error) {
    const fix = `The agent does not respond: ${reasonOf(card, base)}. Check that it is running and that the address is correct.`
    return { findings: [{ what: 'reachable', fix }] }
  }
  const second = hasObject(card) ? undefined : await get(`${base}${foreignCardPaths[1]}`)
  const foreign = await foreignCardIn(card, second)
  if (foreign !== undefined) {
    const found = await checkForeignAgent({ base, ...foreign, credential, read, reasonOf })
    const agent = { base, card: foreign.card, skills: foreign.card['skills'] }
    return { findings: [{ what: 'reachable' }, ...found], agent }
  }
  if (second !== undefined && !hasObject(second))
    return { findings: [{ what: 'reachable' }, noCardFinding([card, second])] }
  const findings = [{ what: 'reachable' }, cardFinding(card)]
  const { did, skills: ofCard } = card.json ?? {}
  const list = get(`${base}/agent/skills`)
  const rest = [
    list.then(skillsFinding),
    identity(base, did),
    health(base),
    malformed(base),
    withoutToken(base),
    ...(token === undefined ? [] : [oneTask(base, token)]),
  ]
  for (const [i, finding] of (await Promise.allSettled(rest)).entries()) {
    findings.push(
      finding.status === 'fulfilled'
        ? finding.value
        : { what: names[i] ?? '', fix: `No answer: ${reasonOf(finding.reason as Error, base)}.` },
    )
  }
  if (token === undefined) findings.push({ what: 'task', note: 'Not tried: give a token with --token.' })
  if (card.json === undefined) return { findings }
  const listed = await list.then(
    ({ json }) => json?.['skills'],
    () => undefined,
  )
  const hasListed = Array.isArray(listed) && listed.length > 0
  return { findings, agent: { base, card: card.json, skills: hasListed ? listed : ofCard } }
}

const hasObject = ({ status, json }: Answer) => status === 200 && json !== undefined

/** Returns the card of an A2A server of another vendor, where the registry would find it. */
async function foreignCardIn(first: Answer, second: Answer | undefined) {
  const [path, { json }] = second === undefined ? [foreignCardPaths[0], first] : [foreignCardPaths[1], second]
  if (json === undefined || !isForeignCard(json) || (await hasDid(json))) return undefined
  return { card: json, path }
}

function noCardFinding(answers: readonly Answer[]): Finding {
  const found = answers.map(({ status, headers }, i) => {
    const to = headers.get('location')
    const how = status === 200 ? 'no JSON object' : `HTTP ${status}${to === null ? '' : ` to ${to}`}`
    return `${foreignCardPaths[i]} returns ${how}`
  })
  const isRedirect = answers.some(({ status }) => status >= 300 && status < 400)
  const how = isRedirect
    ? 'Redirects are not followed: give the address of the server itself'
    : 'Give the address below which the card is. For an MCP server, use --mcp'
  return { what: 'card', fix: `There is no card: ${found.join(', ')}. ${how}.` }
}

/** Cards of the reference implementation state their DID in an extension. The gateway calls such agents directly. */
async function hasDid(card: JsonObject): Promise<boolean> {
  const { readCard } = await import('@parley/gateway/registry/card')
  try {
    return readCard(card).did !== undefined
  } catch {
    return false
  }
}

const names = ['skills', 'DID document', 'health', 'error answers', 'asks for a token', 'task']

function cardFinding({ status, json }: Answer): Finding {
  const what = 'card'
  if (status !== 200 || json === undefined)
    return { what, fix: `/.well-known/agent.json must answer 200 with a JSON object; it answers ${status}.` }
  if (typeof json['name'] !== 'string' || json['name'] === '')
    return { what, fix: 'The card needs a `name`.' }
  if (typeof json['url'] !== 'string')
    return { what, fix: 'The card needs a `url`: where callers reach the agent.' }
  return { what }
}

function skillsFinding({ status, json }: Answer): Finding {
  const what = 'skills'
  const list = json?.['skills']
  if (status !== 200 || !Array.isArray(list))
    return { what, fix: `/agent/skills must answer 200 with {skills, total}; it answers ${status}.` }
  if (list.length === 0) return { what, fix: 'The agent has no skills, so no work is routed to it.' }
  return { what }
}

async function identity(base: string, did: unknown): Promise<Finding> {
  const what = 'DID document'
  if (typeof did !== 'string')
    return { what, note: 'The card has no DID: the agent can be registered, but not verified.' }
  if (!did.startsWith('did:parley:'))
    return { what, note: `${did} does not use the method did:parley and is not checked here.` }
  const { status, json } = await get(`${base}/did/resolve?did=${encodeURIComponent(did)}`)
  if (status !== 200) return { what, fix: `/did/resolve must answer 200 for ${did}; it answers ${status}.` }
  try {
    verifyDocument(json, did)
    return { what }
  } catch (error) {
    if (error instanceof DocumentFault) return { what, fix: error.message }
    throw error
  }
}

async function health(base: string): Promise<Finding> {
  const what = 'health'
  const { status, json } = await get(`${base}/health`)
  if (status === 200) return { what }
  const checks = Object.entries((json?.['checks'] ?? {}) as JsonObject).filter(([, value]) => value !== 'ok')
  const failing = checks
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('; ')
  return { what, fix: `/health answers ${status}${failing === '' ? '' : ` (${failing})`}.` }
}

/** Every error must have a JSON-RPC envelope (spec/json-rpc.md#errors). */
async function malformed(base: string): Promise<Finding> {
  const what = 'error answers'
  const missing = await get(`${base}/no-such-route`)
  if (missing.status !== 404 || codeOf(missing) === undefined)
    return {
      what,
      fix: errorAnswerFault(missing),
    }
  return { what }
}

function errorAnswerFault({ status }: Answer): string {
  return status === 404
    ? 'An unknown path returns 404, but the body is not a JSON-RPC error object.'
    : `An unknown path must return 404 with a JSON-RPC error; it returns ${status}.`
}

async function withoutToken(base: string): Promise<Finding> {
  const what = 'asks for a token'
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: methodOf('listTasks'), params: {} })
  const answer = await read(`${base}/`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  })
  if (answer.status === 401 && codeOf(answer) === -32009 && answer.headers.has('www-authenticate'))
    return { what }
  return { what, fix: tokenFault(answer) }
}

function tokenFault(answer: Answer): string {
  const code = codeOf(answer)
  const faults = [
    ...(answer.status === 401 ? [] : [`the status is ${answer.status} instead of 401`]),
    ...(code === -32009
      ? []
      : [code === undefined ? 'there is no JSON-RPC error' : `the error code is ${code} instead of -32009`]),
    ...(answer.headers.has('www-authenticate') ? [] : ['the header WWW-Authenticate is missing']),
  ]
  return `A request without a token must be refused: ${faults.join('; ')}.`
}

async function oneTask(base: string, token: string): Promise<Finding> {
  const what = 'task'
  const client = new AgentClient({ url: base, token })
  const task = await client.send('Hello').catch((error: unknown) => {
    if (error instanceof RpcError && error.status === 401) return undefined
    throw error
  })
  if (task === undefined) {
    const fix =
      'The agent rejects the token: it uses another OAuth server, or no operator has admitted it yet.'
    return { what, fix }
  }
  const ended = await client.wait(task.id, { signal: AbortSignal.timeout(60_000) })
  const { state } = ended.status
  if (state === 'completed') return { what }
  return { what, note: `A message “Hello” ended as ${state}.` }
}

function codeOf({ json }: Answer): number | undefined {
  const code = (json?.['error'] as JsonObject | undefined)?.['code']
  return typeof code === 'number' ? code : undefined
}

function get(url: string): Promise<Answer> {
  return read(url, {})
}

async function read(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(limitMs) })
  const text = await boundedText(response.body, answerMaxBytes)
  return { status: response.status, headers: response.headers, json: jsonObjectOf(text) }
}

function reasonOf(error: Error, url: string): string {
  if (error.name === 'TimeoutError') return `no complete answer within ${limitMs / 1000} s`
  const cause = error.cause as NodeJS.ErrnoException | undefined
  return connectionFault(error, url) ?? cause?.code ?? cause?.message ?? error.message
}
