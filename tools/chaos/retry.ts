import { setTimeout as wait } from 'node:timers/promises'
import { type AgentClient, ConnectionError, RpcError } from '@parley/client/internal/client'
import type { Client } from './clients.ts'
import { pick } from './plan.ts'

/** Counts for all clients. */
export interface Tally {
  /** Number of acknowledged first messages. */
  acknowledged: number
  /** Number of requests retried after a clear refusal or a lost connection, by reason. */
  outages: Map<string, number>
  /** Number of responses that were neither a result nor a clear error, by text. */
  unclear: Map<string, number>
}

/** When the last outage ended, in milliseconds since 1970. After that, requests must succeed. */
export interface Recovery {
  since: number | undefined
}

export interface ClientRun {
  client: Client
  random: () => number
  tally: Tally
  recovery: Recovery
}

/** Error codes which mean that the request has already been processed. */
const done = [-32002, -32004, -32008]
const pauseMs = 100
/** Time limit for a response after the last outage. */
const answerWithinMs = 180_000

/** Any gateway, with or without the agent's path. */
export function anyClient({ client, random }: ClientRun): AgentClient {
  const { named, routed } = pick(client.at, random())
  return random() < 0.5 ? named : routed
}

/**
 * Repeats a request at any gateway until it succeeds. Returns undefined if an error shows that it was already processed.
 * Counts errors other than an outage, a payment in progress or a wrong client clock. @throws Error if there is no
 * response after the last outage
 */
export async function untilDone<T>(
  run: ClientRun,
  ask: (way: AgentClient) => Promise<T>,
  way: () => AgentClient = () => anyClient(run),
): Promise<T | undefined> {
  const { client, tally, recovery } = run
  const begun = Date.now()
  for (let last: unknown; ; ) {
    if (Date.now() - Math.max(begun, recovery.since ?? Infinity) > answerWithinMs)
      throw new Error(`${client.name} got no response: ${String(last)}`, { cause: last })
    const { wrongBy } = client.clock
    try {
      const answer = await ask(way())
      if (client.role === 'signs' && wrongBy !== 0 && client.clock.wrongBy === wrongBy)
        client.acceptedDespiteClock += 1
      return answer
    } catch (error) {
      last = error
      if (error instanceof RpcError && done.includes(error.code)) return undefined
      if (isPaidWithoutTask(client, error)) {
        client.paidWithoutTask += 1
        return undefined
      }
      if (isOutage(error)) count(tally.outages, outageOf(error))
      else if (isClockRefusal(client, error, wrongBy)) client.refusedByClock += 1
      else count(tally.unclear, error instanceof RpcError ? textOf(error) : String(error))
      await wait(pauseMs)
    }
  }
}

/** Whether the error is a lost connection, -32042 (503) with a retry time, or 409 with one for a payment in progress. */
function isOutage(error: unknown): error is RpcError | ConnectionError {
  if (error instanceof ConnectionError) return true
  if (!(error instanceof RpcError)) return false
  const { code, status, headers, data } = error
  // The gateway did not route this task, did not find it at the reachable agents, and lists the unreachable ones.
  if (code === -32001 && headers.has('x-parley-incomplete')) return true
  if (!headers.has('retry-after')) return false
  return (code === -32042 && status === 503) || (code === -32043 && data['reason'] === 'payment_in_progress')
}

/** Whether the process died between payment and task. In this case, the payment is listed for refund. */
function isPaidWithoutTask({ purse }: Client, error: unknown): boolean {
  const isRefused = error instanceof RpcError && error.status === 402
  return purse !== undefined && isRefused && /nonce_already_used/.test(error.message)
}

function isClockRefusal({ role, purse }: Client, error: unknown, wrongBy: number): boolean {
  if (!(error instanceof RpcError)) return false
  if (role === 'signs' && wrongBy !== 0)
    return error.code === -32012 && error.data['reason'] === 'timestamp_out_of_window'
  if (purse === undefined || purse.signedWrongBy === 0 || error.status !== 402) return false
  purse.forget()
  return /valid_before|expired/.test(error.message)
}

function outageOf(error: RpcError | ConnectionError): string {
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
