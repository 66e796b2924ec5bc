import type { RestCall } from '@parley/kit/http/rest-call'
import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { NegotiationRequest } from '@parley/negotiation/score/request'
import type { Codec } from '@parley/wire/codecs/codec'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage } from '@parley/wire/model/call'
import type { Operation } from '@parley/wire/model/operation'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AgentDirectory } from '../../registry/agent-policies.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { ResponseHead } from '../forwarding/exchange.ts'
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
  /** Set for a part of a request that is split. */
  part?: RequestPart
}

/** A part of a request, which is sent like a separate message. */
export interface RequestPart {
  /** Replaces the `Idempotency-Key` of the request. */
  key: string
  /** The requirements of the part. */
  wanted: NegotiationRequest
  /** Receives the response in place of the caller. */
  receive(answered: PartAnswer): void
}

export interface PartAnswer {
  entry: AgentEntry
  head: ResponseHead
  bytes: Buffer
  /** The headers that the gateway adds. */
  headers: Record<string, string>
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

/** The caller's `Idempotency-Key`, or that of a part. @throws ParleyError InvalidParams */
export function keyOf({ request, part }: Pick<Incoming, 'request' | 'part'>): string | undefined {
  if (part !== undefined) return part.key
  const key = request.headers['idempotency-key']
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
