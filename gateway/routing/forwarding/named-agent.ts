import { requireNoDelegate } from '@parley/kit/auth/authenticate'
import type { Caller } from '@parley/kit/auth/caller'
import { peekId, requireOperation } from '@parley/kit/http/rpc-call'
import type { Codec } from '@parley/wire/codecs/codec'
import { methodNotFound, partsOf } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import { isJsonObject, jsonObjectOf } from '@parley/wire/model/json-text'
import { operations } from '@parley/wire/model/operation'
import type { JsonObject } from '@parley/wire/model/task'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isRecorded } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { type DispatcherFor, requireReady, type Target, targetOf } from './agent-target.ts'
import type { AuthorizedTarget, NamedAgentTokens } from './agent-tokens.ts'
import { type CallAddress, type ReadCall, readCallAt } from './call-reader.ts'
import type { ResponseHead } from './exchange.ts'
import { type ForwardOptions, forward, type ReportSignal } from './forward.ts'
import type { ReferenceGrants } from './reference-grants.ts'
import { dialectUnsupported, lacksDialect } from './refusal.ts'
import { type FoundAgent, isCardMethod, requireAllowedSkills } from './skill-limit.ts'

export interface ResponseRecorder {
  /** Returns undefined for a request whose response is not recorded. */
  observerOf: (
    request: FastifyRequest,
    reply: FastifyReply,
    target: Target,
    call: ReadCall | undefined,
  ) => ForwardOptions['watch']
}

/** Learns from the calls with which callers name an agent (`NamedUses`). */
export interface UseRecorder {
  isDue: (owner: string, agent: string) => boolean
  note: (owner: string, agent: string, call: ReadCall) => void
}

export interface NamedAgentOptions {
  /** Finds the agent with this slug, or undefined if the sender of the request may not see it. */
  find: (slug: string, request: FastifyRequest) => FoundAgent | undefined | Promise<FoundAgent | undefined>
  dispatcherFor: DispatcherFor
  tokens: Pick<NamedAgentTokens, 'authorize'>
  /** Lets agents read the tasks that messages refer to. */
  grants?: ReferenceGrants
  /** Returns an extended card of an agent with the gateway's addresses, in the dialect. */
  cardOut: (entry: AgentEntry, card: JsonObject, codec: Codec) => unknown
  /** Called with the outcome of every forwarded call. */
  reportSignal?: ReportSignal
  /** Records the tasks and payment sessions of external agents from their responses. */
  routes?: ResponseRecorder
  /** Learns from callers that use an agent again. */
  uses?: UseRecorder
}

/** An agent that a request names, and the request as it reaches this agent. */
export interface NamedTarget {
  found: FoundAgent
  target: AuthorizedTarget
}

/**
 * Finds and authorizes the agent that a request names.
 * @param path path on the agent, without the query
 * @throws ParleyError NotFound for an agent that does not exist or that the sender may not see, Unavailable, and as
 * `NamedAgentTokens.authorize`
 */
export async function namedTarget(
  request: FastifyRequest,
  slug: string,
  path: string,
  { find, tokens, dispatcherFor }: NamedAgentOptions,
): Promise<NamedTarget> {
  const finding = find(slug, request)
  // The agents of a gateway without policies are found without waiting.
  const found = finding instanceof Promise ? await finding : finding
  if (found === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
  const target = await tokens.authorize(request, targetOf(found.entry, path, dispatcherFor), path)
  return { found, target: { ...target, isNamed: true } }
}

/** A buffered request to a named agent. */
export interface NamedRequest extends NamedTarget {
  /** Undefined if agents accept no calls at the path. */
  address: CallAddress | undefined
  body: Buffer
}

/** Checks a buffered request to a named agent and forwards it once. Rejects with an error in the caller's dialect. */
export async function forwardNamed(
  request: FastifyRequest,
  reply: FastifyReply,
  named: NamedRequest,
  { reportSignal, routes, uses, grants, cardOut }: NamedAgentOptions,
): Promise<FastifyReply> {
  const { target, found, address, body } = named
  const { entry } = found
  const { query } = partsOf(request.url)
  const path = query === undefined ? target.path : `${target.path}?${query}`
  try {
    const keepsRoute = routes !== undefined && isRecorded(entry)
    const user = userOf(request)
    // `contexts/clear` also removes what was learned. A slash may be escaped in JSON.
    const mayTeach =
      user !== undefined && uses !== undefined && (uses.isDue(user, entry.id) || mayContain(body, 'ontexts'))
    const read =
      mayTeach || mustRead(request, named, keepsRoute)
        ? await checkedCall(request, named, keepsRoute)
        : undefined
    const watch = routes?.observerOf(request, reply, target, read)
    const taskIds = read?.codec.readReferences(read.params) ?? []
    const references =
      taskIds.length === 0 ? undefined : await grants?.create(request.token, entry.id, taskIds)
    const sent = { ...target, path, references }
    const check = (head: ResponseHead) => {
      if (mayTeach && read !== undefined && head.status < 300) uses.note(user, entry.id, read)
      if (address !== undefined && lacksDialect(entry, address, head)) throw dialectUnsupported(entry.slug)
    }
    const rewrite = read?.operation === 'getExtendedCard' ? cardRewriter(entry, read, cardOut) : undefined
    return await forward(request, reply, sent, { body }, { reportSignal, watch, check, rewrite })
  } catch (error) {
    nameCall(request, address, body)
    throw error
  }
}

/** The caller, unless an agent calls in its name. */
const userOf = ({ token }: FastifyRequest) =>
  token?.caller.delegate === undefined ? token?.caller.id : undefined

/** Whether the call has to be checked or recorded. Most requests are forwarded without being parsed. */
function mustRead(
  { token }: FastifyRequest,
  { found: { requireSkill }, address, body }: NamedRequest,
  keepsRoute: boolean,
): boolean {
  if (keepsRoute || requireSkill !== undefined || token?.caller.delegate !== undefined) return true
  // Most requests contain neither the name of the card's method nor that of the field with references.
  return mayNameCard(address, body) || mayContain(body, 'eference')
}

function mayNameCard(address: CallAddress | undefined, body: Buffer): boolean {
  return address?.rest?.route.operation === 'getExtendedCard' || mayContain(body, 'xtended')
}

/** Whether a string in the JSON may contain the letters, any of which may be escaped. */
function mayContain(body: Buffer, letters: string): boolean {
  if (body.includes(letters)) return true
  if (!body.includes('\\u00')) return false
  const text = body.toString('latin1')
  return text
    .replace(/\\u00([0-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .includes(letters)
}

/**
 * Reads and checks the call.
 * @returns undefined for a request that only the agent has to understand
 * @throws ParleyError if the caller may not make this call, or the agent does not receive it
 */
async function checkedCall(
  request: FastifyRequest,
  { found: { requireSkill, entry }, address, body }: NamedRequest,
  keepsRoute: boolean,
): Promise<ReadCall | undefined> {
  const caller = request.token?.caller
  const { query } = partsOf(request.url)
  const call = address && readOrReason(address, { request, query, body })
  const read = call instanceof ParleyError ? undefined : call
  if (read?.operation !== undefined && operations[read.operation].target === 'message') requireReady(entry)
  // The agent's answer could be a card that the gateway would not rewrite.
  if (call instanceof ParleyError && (keepsRoute || mayNameCard(address, body))) throw call
  if (read !== undefined && read.operation === undefined && isCardMethod(read.method))
    throw methodNotFound(read.method, read.codec)
  if (caller?.delegate !== undefined) requireDelegable(caller, call)
  if (requireSkill !== undefined) await requireAllowedSkills(body, read, requireSkill)
  return read
}

/** Official clients continue with the addresses in an extended card, where they send their token. */
function cardRewriter(
  entry: AgentEntry,
  { rest, codec }: Pick<ReadCall, 'rest' | 'codec'>,
  cardOut: NamedAgentOptions['cardOut'],
): NonNullable<ForwardOptions['rewrite']> {
  return ({ status }, bytes) => {
    const answer = jsonObjectOf(bytes.toString('utf8'))
    if (status >= 400 && answer?.['result'] === undefined) return bytes
    if (answer !== undefined && rest === undefined && isJsonObject(answer['error'])) {
      const { jsonrpc = '2.0', id = null, error } = answer
      return Buffer.from(JSON.stringify({ jsonrpc, id, error }))
    }
    const card = rest === undefined ? answer?.['result'] : answer
    if (!isJsonObject(card)) throw unreadableCard(entry.slug)
    const written = cardOut(entry, card, codec)
    if (rest !== undefined) return Buffer.from(JSON.stringify(written))
    const { jsonrpc = '2.0', id = null } = answer ?? {}
    return Buffer.from(JSON.stringify({ jsonrpc, id, result: written }))
  }
}

const unreadableCard = (agent: string) =>
  new ParleyError('Unavailable', {
    message: `Agent ${agent} sent an extended card that is not a card. Use its public card`,
    data: { reason: 'agent_card', agent },
  })

/** Sets the fields of the request with which an error has the ID and the dialect of the call. */
export function nameCall(request: FastifyRequest, address: CallAddress | undefined, body: Buffer): void {
  if (address?.rest !== undefined) return
  request.rpcId = peekId(body)
  const { query } = partsOf(request.url)
  const call = address && body.byteLength <= 64 * 1024 && readOrReason(address, { request, query, body })
  // Methods that are not known would each add a label to the metrics.
  if (call && !(call instanceof ParleyError) && call.operation !== undefined) request.rpcMethod = call.method
}

/** Returns the error for a body that cannot be read, which only some callers may send. */
function readOrReason(
  address: CallAddress,
  { request, query, body }: { request: FastifyRequest; query: string | undefined; body: Buffer },
): ReadCall | ParleyError {
  const { headers, method, url } = request
  try {
    return readCallAt(address, { headers, method, url, query }, body)
  } catch (error) {
    return ParleyError.from(error)
  }
}

/**
 * Allows an agent that acts for a client to send messages and to use tasks (spec/authentication.md#delegated-tokens).
 * @throws ParleyError InsufficientPermissions; InvalidRequest and others if the request is not a call
 */
function requireDelegable(caller: Caller, call: ReadCall | ParleyError | undefined): void {
  if (call === undefined) return requireNoDelegate(caller)
  if (call instanceof ParleyError) throw call
  if (call.operation === undefined) throw methodNotFound(call.method, call.codec)
  requireOperation(caller, call.operation)
}
