import { hash, randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { snakeOf } from '@parley/wire/codecs/parley/spelling'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'

/** A request as it goes to an agent. */
export interface CompletedRequest {
  body: Buffer
  /** The agent gets `sent` as JSON-RPC id, the caller its own in the answer. Absent: both have the caller's. */
  answerId?: { sent: string; callers: unknown }
}

/** Fields other than the id that are filled in when the caller left them out. */
export interface MissingFields {
  /** Of what the ids are made, so that the same message sent again is the same. */
  seed: string
  /** Undefined: the task has a context that is not known here. */
  contextId: string | undefined
}

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i
const signed = ['x-did', 'x-did-timestamp', 'x-did-signature']

/** Whether anything may be filled in: agents of this deployment need nothing, and a signature is over the bytes as they came. */
export function mayComplete(entry: AgentEntry, headers: IncomingHttpHeaders): boolean {
  return isExternal(entry) && signed.every((name) => headers[name] === undefined)
}

/**
 * Agents of the reference implementation require what callers of ours may leave out: a UUID as JSON-RPC id, and with a
 * message `contextId`, `taskId` and `configuration.acceptedOutputModes`.
 * @param fill absent: the request is no message
 */
export function completeRequest(
  entry: AgentEntry,
  { headers, body }: { headers: IncomingHttpHeaders; body: Buffer },
  fill?: MissingFields,
): CompletedRequest {
  if (!mayComplete(entry, headers)) return { body }
  const request = parseJson(body)
  if (!isObject(request)) return { body }
  const { id, params } = request
  const keepsId = typeof id === 'string' && uuid.test(id)
  const filled = fill === undefined ? params : withFill(params, fill, entry.card)
  if (keepsId && filled === params) return { body }
  const sent = keepsId ? id : fill === undefined ? randomUUID() : seededUuid(fill.seed, 'id')
  return {
    body: Buffer.from(
      JSON.stringify({ ...request, id: sent, ...(filled !== undefined && { params: filled }) }),
    ),
    ...(!keepsId && { answerId: { sent, callers: id } }),
  }
}

/** A UUID that is always the same for the same seed. */
export function seededUuid(seed: string, what: 'id' | 'task' | 'context'): string {
  const hex = hash('sha256', `${what} ${seed}`)
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16)
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join('-')
}

/** The same object where nothing was missing. */
function withFill(params: unknown, { seed, contextId }: MissingFields, card: AgentEntry['card']): unknown {
  if (!isObject(params) || !isObject(params['message'])) return params
  const { message } = params
  const taskId = lacks(message, 'taskId') ? { taskId: seededUuid(seed, 'task') } : {}
  const context = contextId !== undefined && lacks(message, 'contextId') ? { contextId } : {}
  const configuration = isObject(params['configuration']) ? params['configuration'] : {}
  const modes = lacks(configuration, 'acceptedOutputModes') ? { acceptedOutputModes: modesOf(card) } : {}
  const added = [taskId, context, modes].some((one) => Object.keys(one).length > 0)
  if (!added) return params
  return {
    ...params,
    message: { ...message, ...taskId, ...context },
    configuration: { ...configuration, ...modes },
  }
}

function lacks(given: Record<string, unknown>, name: string): boolean {
  return [name, snakeOf(name)].every((spelling) => given[spelling] === undefined || given[spelling] === null)
}

/** What the agent makes anyway: naming it refuses nothing. */
function modesOf(card: AgentEntry['card']): unknown[] {
  const modes = card['defaultOutputModes']
  return Array.isArray(modes) && modes.length > 0 ? modes : ['text/plain', 'application/json']
}
