import { setTimeout as wait } from 'node:timers/promises'
import { type AgentClient, ConnectionError, RpcError } from '@parley/client/internal/client'
import type { Client } from './clients.ts'
import { pick } from './plan.ts'

/** What asking came to, over all clients. */
export interface Tally {
  /** First messages that were answered. */
  told: number
  /** Requests that were refused clearly, or broke off, and came again, by why. */
  away: Map<string, number>
  /** Answers that were neither what was asked for nor said clearly what was away, by what they said. */
  unclear: Map<string, number>
}

/** Since when nothing is away any more, in milliseconds since 1970, so that answers have to come. */
export interface Calm {
  since: number | undefined
}

export interface Asking {
  client: Client
  random: () => number
  tally: Tally
  calm: Calm
}

/** Refusals that say: what is asked for is done. */
const done = [-32002, -32004, -32008]
const pauseMs = 100
/** For an answer once nothing is away any more. */
const answerWithinMs = 180_000

/** Any gateway, by either way. */
export function anyWay({ client, random }: Asking): AgentClient {
  const { named, routed } = pick(client.at, random())
  return random() < 0.5 ? named : routed
}

/**
 * Asks again and again, at any gateway, until there is an answer; undefined where it says that it is done already. What is
 * refused for another reason than an outage, a payment under way or a wrong clock of the client is counted.
 * @throws Error when no answer comes although nothing is away any more
 */
export async function persistently<T>(
  asking: Asking,
  ask: (way: AgentClient) => Promise<T>,
  way: () => AgentClient = () => anyWay(asking),
): Promise<T | undefined> {
  const { client, tally, calm } = asking
  const begun = Date.now()
  for (let last: unknown; ; ) {
    if (Date.now() - Math.max(begun, calm.since ?? Infinity) > answerWithinMs)
      throw new Error(`${client.name} had no answer: ${String(last)}`, { cause: last })
    const { wrongBy } = client.clock
    try {
      const answer = await ask(way())
      if (client.role === 'signs' && wrongBy !== 0 && client.clock.wrongBy === wrongBy)
        client.takenInSpiteOfClock += 1
      return answer
    } catch (error) {
      last = error
      if (error instanceof RpcError && done.includes(error.code)) return undefined
      if (isInVain(client, error)) {
        client.paidInVain += 1
        return undefined
      }
      if (isAway(error)) count(tally.away, whyAway(error))
      else if (isOfTheClock(client, error, wrongBy)) client.refusedByClock += 1
      else count(tally.unclear, error instanceof RpcError ? textOf(error) : String(error))
      await wait(pauseMs)
    }
  }
}

/** A connection that broke, or -32042 (503) and when to come again; 409 says so of a payment that is under way. */
function isAway(error: unknown): error is RpcError | ConnectionError {
  if (error instanceof ConnectionError) return true
  if (!(error instanceof RpcError)) return false
  const { code, status, headers, data } = error
  // Of a task that the gateway did not route itself: not found where it could ask, and it says where it could not.
  if (code === -32001 && headers.has('x-parley-incomplete')) return true
  if (!headers.has('retry-after')) return false
  return (code === -32042 && status === 503) || (code === -32043 && data['reason'] === 'payment_in_progress')
}

/** Its payment was taken by a process that died before the task was there, and is listed for refund by now. */
function isInVain({ purse }: Client, error: unknown): boolean {
  const isRefused = error instanceof RpcError && error.status === 402
  return purse !== undefined && isRefused && /nonce_already_used/.test(error.message)
}

function isOfTheClock({ role, purse }: Client, error: unknown, wrongBy: number): boolean {
  if (!(error instanceof RpcError)) return false
  if (role === 'signs' && wrongBy !== 0)
    return error.code === -32012 && error.data['reason'] === 'timestamp_out_of_window'
  if (purse === undefined || purse.signedWrongBy === 0 || error.status !== 402) return false
  purse.forget()
  return /valid_before|expired/.test(error.message)
}

function whyAway(error: RpcError | ConnectionError): string {
  if (error instanceof ConnectionError) return error.message.slice(error.message.indexOf(': ') + 2)
  const { reason } = error.data
  return typeof reason === 'string' ? reason : error.message
}

function count(counts: Map<string, number>, text: string): void {
  counts.set(text, (counts.get(text) ?? 0) + 1)
}

function textOf({ code, status, message, data }: RpcError): string {
  const reason = typeof data['reason'] === 'string' ? data['reason'] : 'no reason'
  return `${code} HTTP ${status}, ${reason}: ${message}`
}
