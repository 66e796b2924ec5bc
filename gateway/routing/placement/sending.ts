import type { RestCall } from '@parley/kit/http/rest-call'
import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { Codec } from '@parley/wire/codecs/codec'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage } from '@parley/wire/model/call'
import type { Operation } from '@parley/wire/model/operation'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AgentDirectory } from '../../registry/agent-policies.ts'
import type { RouteKind } from '../store/routing-store.ts'
import type { PresentedPayment } from './payment-affinity.ts'
import type { RouteKey } from './route-claims.ts'

/** An authorized call. */
export interface Incoming {
  request: FastifyRequest
  reply: FastifyReply
  body: Buffer
  /** The dialect of the caller. */
  codec: Codec
  /** Set for a call without a JSON-RPC envelope. */
  rest: RestCall | undefined
  method: string
  operation: Operation
  params: Record<string, unknown>
  owner: string
  /** The agents that the caller may see. */
  agents: AgentDirectory
  /** This call's memory budget, held until the client has read the response. */
  claim: AnswerClaim
}

/** A message with everything needed to send it to an agent and to repeat it. */
export interface Sending extends Incoming {
  message: IncomingMessage
  /** The payment of the message. */
  payment: PresentedPayment | undefined
  key: string
  keyIsTheirs: boolean
  /** Whether the agent answers once the task has ended or paused. */
  waits: boolean
  /** When the gateway received the message, in milliseconds since 1970. */
  at: number
  /** Runs when the store has the routes that later messages must follow. */
  onPlaced: () => void
  words: Record<string, number>
}

/** The caller's `Idempotency-Key`. @throws ParleyError InvalidParams */
export function keyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key === 'string' && key.length > 0 && key.length <= 255) return key
  throw new ParleyError('InvalidParams', { message: 'Idempotency-Key must have 1 to 255 characters' })
}

/**
 * The routes to claim before a message is sent. If the message does not wait for its task and there are no other gateways,
 * the keyed mutex covers tasks and contexts.
 * @param isShared whether other gateways use the same store
 */
export function claimedKeys(sending: Sending, isShared: boolean): RouteKey[] {
  const { message, key, keyIsTheirs, owner } = sending
  const shared = isShared || sending.waits
  const named: [RouteKind, string | undefined][] = [
    ['key', keyIsTheirs ? key : undefined],
    ['task', shared ? message.taskId : undefined],
    ['context', shared ? message.contextId : undefined],
  ]
  return named.flatMap(([kind, id]) => (id === undefined ? [] : [{ owner, kind, id }]))
}
