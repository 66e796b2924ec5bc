import { setTimeout as delay } from 'node:timers/promises'
import { type AnswerClaim, isBudgetRefusal } from '@parley/kit/process/answer-budget'
import { inSpan } from '@parley/kit/telemetry/tracing'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuthorizedTarget } from './agent-tokens.ts'
import type { CompletedRequest } from './completed-request.ts'
import type { Exchange, ResponseHead } from './exchange.ts'
import {
  type AgentSignal,
  abortOnDisconnect,
  ClientDisconnected,
  exchangeWith,
  forwardSpan,
  type ReportSignal,
  signalOf,
} from './forward.ts'
import { isRejectedUnprocessed, outcomeStatus } from './refusal.ts'

export interface Delivery {
  request: FastifyRequest
  reply: FastifyReply
  sent: CompletedRequest
  /** The idempotency key, with which the agent accepts the message only once, however often it is sent. */
  key: string
  reportSignal: ReportSignal
  /** Memory budget for the buffered response. */
  claim: AnswerClaim
  /** For how long a message with an unknown outcome is retried, in milliseconds. Default 10,000. */
  repeatMs?: number
  /** An agent that does not respond within this time is reported as failed but still awaited. Default 15,000. */
  silentMs?: number
  /** Whether the agent responds once the task has ended or paused, so that a late response is not a failure. */
  waits?: boolean
}

/** The result of sending a message to one agent. */
export type Delivered =
  /** The agent did not receive the message or rejected it unprocessed, so another agent may get it. */
  | {
      kind: 'not taken'
      why: 'not reached' | 'busy'
      error?: unknown
      answer?: { head: ResponseHead; bytes: Buffer }
    }
  /** The complete response. */
  | { kind: 'answered'; head: ResponseHead; bytes: Buffer }
  /** A stream has started; `first` holds the bytes received so far. */
  | { kind: 'streams'; head: ResponseHead; first: Buffer; exchange: Exchange }
  /** The agent may have accepted the message. */
  | { kind: 'unknown'; error: unknown }

const answerMaxBytes = 64 * 1024 * 1024
/** Each chunk is searched again from the start, so the bytes before the first frame are limited. */
const firstFrameMaxBytes = 64 * 1024
const repeatMs = 10_000
/** Longer than an agent waits for a payment to settle. */
const silentMs = 15_000

/**
 * Sends a message to one agent. While the outcome is unknown, the message is sent again to the same agent under the
 * same key, until the agent gives a conclusive response or the time is up.
 */
export async function deliver(target: AuthorizedTarget, delivery: Delivery): Promise<Delivered> {
  const first = await tracedAttempt(target, delivery, 1)
  // A response that exceeds the memory budget would exceed it again.
  if (first.kind !== 'unknown' || isBudgetRefusal(first.error)) return first
  const until = Date.now() + (delivery.repeatMs ?? repeatMs)
  for (let pauseMs = 100, number = 2; ; pauseMs = Math.min(2 * pauseMs, 1000), number += 1) {
    const leftMs = until - Date.now()
    if (leftMs <= 0 || delivery.reply.raw.destroyed) return first
    await delay(Math.min(pauseMs, leftMs))
    const again = await tracedAttempt(
      target,
      { ...delivery, reportSignal: answeredOnly(delivery.reportSignal) },
      number,
      // The agent waits for the task, and its own limit applies.
      delivery.waits === true ? undefined : until,
    )
    if (again.kind === 'streams' || (again.kind === 'answered' && isConclusive(again))) return again
  }
}

/** Counts a message as at most one failure, however often it is repeated. */
function answeredOnly(reportSignal: ReportSignal): ReportSignal {
  return (id, sign) => {
    if (sign === 'answered') reportSignal(id, sign)
  }
}

/**
 * Reports the signal of one request, and reports a failure early if the agent does not respond in time. Undefined
 * reports nothing.
 */
function signalReporter(
  id: string,
  { reportSignal, silentMs: ms = silentMs, waits }: Pick<Delivery, 'reportSignal' | 'silentMs' | 'waits'>,
) {
  let wasSilent = false
  const isLate = () => {
    wasSilent = true
    reportSignal(id, 'failed')
  }
  const timer = waits === true ? undefined : setTimeout(isLate, ms)
  return (sign: AgentSignal | undefined) => {
    clearTimeout(timer)
    if (sign === 'answered' || (sign === 'failed' && !wasSilent)) reportSignal(id, sign)
  }
}

/** Makes each request to an agent a step of the trace, also one that is repeated or that another agent then receives. */
function tracedAttempt(
  target: AuthorizedTarget,
  delivery: Delivery,
  number: number,
  until?: number,
): Promise<Delivered> {
  return inSpan('forward', forwardSpan(target.entry, { 'parley.attempt': number }), async (span) => {
    const delivered = await attempt(target, delivery, until)
    const { kind } = delivered
    span.set({ 'parley.outcome': kind === 'not taken' ? delivered.why : kind })
    if (kind === 'answered' || kind === 'streams')
      span.set({ 'http.response.status_code': delivered.head.status })
    else span.fail(kind)
    return delivered
  })
}

/** @param until deadline in milliseconds since 1970; if absent, the connection's timeouts apply */
async function attempt(
  target: AuthorizedTarget,
  { request, reply, sent, key, claim, ...reporting }: Delivery,
  until?: number,
): Promise<Delivered> {
  const reportSignal = signalReporter(target.entry.id, reporting)
  // The gateway reads the response, so it must not be compressed.
  const exchange = exchangeWith(target, request, sent, {
    'idempotency-key': key,
    'accept-encoding': 'identity',
  })
  const removeListener = abortOnDisconnect(reply, exchange)
  const timeOut = () => exchange.abort(new Error('the agent did not answer in time'))
  const timer = until === undefined ? undefined : setTimeout(timeOut, Math.max(1, until - Date.now()))
  const cleanUp = () => {
    clearTimeout(timer)
    removeListener()
  }
  try {
    const head = await exchange.head
    if (isStream(head)) {
      const first = await exchange.peek((bytes) => hasFrame(bytes) || bytes.byteLength > firstFrameMaxBytes)
      clearTimeout(timer)
      reportSignal(signalOf(outcomeStatus(head, errorFrameIn(first))))
      return { kind: 'streams', head, first, exchange }
    }
    let size = 0
    const bytes = await exchange.collect(answerMaxBytes, (more) => claim.reserve((size += more)))
    cleanUp()
    reportSignal(signalOf(outcomeStatus(head, bytes)))
    if (isRejectedUnprocessed(head.status, bytes))
      return { kind: 'not taken', why: 'busy', answer: { head, bytes } }
    return { kind: 'answered', head, bytes }
  } catch (error) {
    cleanUp()
    reportSignal(error instanceof ClientDisconnected || isBudgetRefusal(error) ? undefined : 'failed')
    if (exchange.sent) return { kind: 'unknown', error }
    return { kind: 'not taken', why: 'not reached', error }
  }
}

/** The JSON of the first frame, because an error may be sent as the only frame of a stream. */
function errorFrameIn(first: Buffer): Buffer {
  const at = first.indexOf('data:')
  const end = first.indexOf('\n', at)
  return at === -1 ? first : first.subarray(at + 'data:'.length, end === -1 ? undefined : end)
}

export function isStream({ status, headers }: ResponseHead): boolean {
  return status === 200 && headers['content-type']?.startsWith('text/event-stream') === true
}

/** Whether the bytes hold a complete frame with data, which comments may precede. */
export function hasFrame(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  return /(^|\n)data:[^\n]*\n\r?\n/.test(text)
}

/** A repeat may fail for new reasons: the token has expired, the signature was used, or a payment is in progress. */
function isConclusive({ head, bytes }: { head: ResponseHead; bytes: Buffer }): boolean {
  const status = outcomeStatus(head, bytes)
  return status < 500 && ![401, 403, 409, 429].includes(status)
}
