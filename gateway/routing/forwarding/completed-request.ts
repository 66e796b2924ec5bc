import { hash, randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { snakeOf } from '@parley/wire/codecs/parley/spelling'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { uuidOfHash, uuidPattern } from '@parley/wire/model/uuid'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'

/** A request in the form in which it is sent to an agent. */
export interface CompletedRequest {
  body: Buffer
  /** The agent receives `sent` as the JSON-RPC id; the caller gets `callers` back. If absent, the id is unchanged. */
  answerId?: { sent: string; callers: unknown }
}

/** Values for fields other than the id that the caller omitted. */
export interface MissingFields {
  /** The ids are derived from this seed, so a repeated message gets the same ids. */
  seed: string
  /** Undefined when the task has a context that the gateway does not know. */
  contextId: string | undefined
}

const signed = ['x-did', 'x-did-timestamp', 'x-did-signature']

/** Fields may be added only for external agents, and never to a signed request, whose signature covers its bytes. */
export function mayComplete(entry: AgentEntry, headers: IncomingHttpHeaders): boolean {
  return isExternal(entry) && signed.every((name) => headers[name] === undefined)
}

/**
 * Adds fields that agents of the reference implementation require and Parley's callers may omit: a UUID as JSON-RPC
 * id, and for a message `contextId`, `taskId` and `configuration.acceptedOutputModes`.
 * @param fill absent for a request that is not a message
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
  const keepsId = typeof id === 'string' && uuidPattern.test(id)
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

/** Derives a UUID from the seed. */
export function seededUuid(seed: string, what: 'id' | 'task' | 'context'): string {
  return uuidOfHash(hash('sha256', `${what} ${seed}`, 'buffer'))
}

/** Returns `params` itself when no field is missing. */
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

/** The agent's default output modes. Accepting all of these excludes nothing. */
function modesOf(card: AgentEntry['card']): unknown[] {
  const modes = card['defaultOutputModes']
  return Array.isArray(modes) && modes.length > 0 ? modes : ['text/plain', 'application/json']
}
