import { setTimeout as delay } from 'node:timers/promises'
import { type AnswerClaim, isBudgetRefusal } from '@parley/kit/process/answer-budget'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Target } from './agent-target.ts'
import type { CompletedRequest } from './completed-request.ts'
import type { Exchange, ResponseHead } from './exchange.ts'
import { isRejectedUnprocessed } from './refusal.ts'
import {
  type AgentSignal,
  abortOnDisconnect,
  ClientDisconnected,
  exchangeWith,
  type ReportSignal,
  signalOf,
} from './relay.ts'

export interface Delivery {
  request: FastifyRequest
  reply: FastifyReply
  sent: CompletedRequest
  /** Under which the agent takes the message once, however often it comes. */
  key: string
  reportSignal: ReportSignal
  /** Holds the answer while it is here. */
  claim: AnswerClaim
  /** For the repetitions to an agent that may have seen the message. Default 10 s. */
  repeatMs?: number
  /** An agent that has not begun to answer by then counts as one that fails, though its answer is waited for. Default 15 s. */
  silentMs?: number
}

/** What an agent made of a message. */
export type Delivered =
  /** Nothing of it reached the agent, or it said that it takes none: another may be asked. */
  | {
      kind: 'not taken'
      why: 'not reached' | 'busy'
      error?: Error
      answer?: { head: ResponseHead; bytes: Buffer }
    }
  /** The whole answer. */
  | { kind: 'answered'; head: ResponseHead; bytes: Buffer }
  /** A stream has begun; `first` is what has come of it. */
  | { kind: 'streams'; head: ResponseHead; first: Buffer; exchange: Exchange }
  /** It may have taken the message, or not. */
  | { kind: 'unknown'; error: Error }

const answerMaxBytes = 64 * 1024 * 1024
/** What comes is looked through with each chunk: an agent that sends byte by byte must not cost much. */
const firstFrameMaxBytes = 64 * 1024
const repeatMs = 10_000
/** Longer than an agent may wait for a payment to be settledRoute. */
const silentMs = 15_000

/**
 * A message to one agent. When its outcome is not known the same agent is asked again, under the same key, until it says
 * what became of it or the time is up.
 */
export async function deliver(target: Target, delivery: Delivery): Promise<Delivered> {
  const first = await attempt(target, delivery)
  // Where there is no room for the answer, there is none for that to a repetition.
  if (first.kind !== 'unknown' || isBudgetRefusal(first.error)) return first
  const until = Date.now() + (delivery.repeatMs ?? repeatMs)
  for (let pauseMs = 100; ; pauseMs = Math.min(2 * pauseMs, 1000)) {
    const leftMs = until - Date.now()
    if (leftMs <= 0 || delivery.reply.raw.destroyed) return first
    await delay(Math.min(pauseMs, leftMs))
    const again = await attempt(
      target,
      { ...delivery, reportSignal: seenAgain(delivery.reportSignal) },
      until,
    )
    if (again.kind === 'streams' || (again.kind === 'answered' && isConclusive(again.head))) return again
  }
}

/** One message is one failure, however often its agent is asked what became of it. */
function seenAgain(reportSignal: ReportSignal): ReportSignal {
  return (id, sign) => {
    if (sign === 'answered') reportSignal(id, sign)
  }
}

/** Tells what is seen of one request, and of an agent that is silent as soon as it has been so for long. Undefined: nothing was. */
function signsOf(
  id: string,
  { reportSignal, silentMs: ms = silentMs }: Pick<Delivery, 'reportSignal' | 'silentMs'>,
) {
  let wasSilent = false
  const timer = setTimeout(() => {
    wasSilent = true
    reportSignal(id, 'failed')
  }, ms)
  return (sign: AgentSignal | undefined) => {
    clearTimeout(timer)
    if (sign === 'answered' || (sign === 'failed' && !wasSilent)) reportSignal(id, sign)
  }
}

/** @param until when it is given up, in milliseconds since 1970; absent: the limits of the connection hold */
async function attempt(
  target: Target,
  { request, reply, sent, key, claim, ...looksOn }: Delivery,
  until?: number,
): Promise<Delivered> {
  const reportSignal = signsOf(target.entry.id, looksOn)
  // The answer is read here: in a compressed one neither its task nor a refusal can be seen.
  const exchange = exchangeWith(target, request, sent, {
    'idempotency-key': key,
    'accept-encoding': 'identity',
  })
  const letGo = abortOnDisconnect(reply, exchange)
  const giveUp = () => exchange.abort(new Error('the agent did not answer in time'))
  const timer = until === undefined ? undefined : setTimeout(giveUp, Math.max(1, until - Date.now()))
  const forget = () => {
    clearTimeout(timer)
    letGo()
  }
  try {
    const head = await exchange.head
    if (isStream(head)) {
      reportSignal('answered')
      const first = await exchange.peek((sofar) => hasFrame(sofar) || sofar.byteLength > firstFrameMaxBytes)
      clearTimeout(timer)
      return { kind: 'streams', head, first, exchange }
    }
    let size = 0
    const bytes = await exchange.collect(answerMaxBytes, (more) => claim.reserve((size += more)))
    forget()
    reportSignal(signalOf(head))
    if (isRejectedUnprocessed(head.status, bytes))
      return { kind: 'not taken', why: 'busy', answer: { head, bytes } }
    return { kind: 'answered', head, bytes }
  } catch (error) {
    forget()
    reportSignal(error instanceof ClientDisconnected || isBudgetRefusal(error) ? undefined : 'failed')
    if (exchange.sent) return { kind: 'unknown', error: error as Error }
    return { kind: 'not taken', why: 'not reached', error: error as Error }
  }
}

export function isStream({ status, headers }: ResponseHead): boolean {
  return status === 200 && headers['content-type']?.startsWith('text/event-stream') === true
}

/** The end of a frame with data; comments may come before it. */
export function hasFrame(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  return /(^|\n)data:[^\n]*\n\r?\n/.test(text)
}

/** A repetition that is refused at the door (a token that ran out, a signature that counts once, a payment under way) tells nothing of the first. */
function isConclusive({ status }: ResponseHead): boolean {
  return status < 500 && ![401, 403, 409, 429].includes(status)
}
