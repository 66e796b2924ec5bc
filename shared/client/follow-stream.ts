import { positionOf } from '@parley/wire/codecs/parley/events'
import { methodOf } from '@parley/wire/codecs/parley/methods'
import { writeParams } from '@parley/wire/codecs/parley/requests'
import type { WireEvent } from '@parley/wire/codecs/parley/shapes'
import { isPaused } from '@parley/wire/model/task'
import { delay } from './delay.ts'
import { eventFrames, type FrameLimits } from './event-frames.ts'
import { ConnectionError, RpcError } from './rpc-error.ts'
import type { CallOptions, Transport } from './transport.ts'

export interface FollowLimits extends FrameLimits {
  /** Attempts in a row without a new event before the stream is given up. */
  reconnectMax: number
  /** Wait before the first attempt; it doubles up to 5 seconds. */
  reconnectDelayMs: number
}

const defaults: FollowLimits = {
  idleTimeoutMs: 60_000,
  frameMaxChars: 128 * 1024 * 1024,
  reconnectMax: 8,
  reconnectDelayMs: 200,
}

export interface Opening {
  method: string
  params: object
  taskId?: string
  afterSequence?: number | undefined
}

/** Where a follower stands: what to ask for after a loss, and whether there is anything left to ask for. */
interface Place {
  taskId: string | undefined
  sequence: number | undefined
  ended: boolean
}

/** A stream that survives its connections. A message is never sent twice: a loss before the first event is thrown. */
export async function* followStream(
  transport: Transport,
  opening: Opening,
  options: CallOptions,
  given: Partial<FollowLimits>,
): AsyncGenerator<WireEvent> {
  const limits = { ...defaults, ...withoutUndefined(given) }
  const place: Place = { taskId: opening.taskId, sequence: opening.afterSequence, ended: false }
  let next: { method: string; params: object; headers?: Record<string, string> } = opening
  for (let losses = 0; ; ) {
    let loss: unknown = new ConnectionError(transport.url, 'the stream ended before its task')
    try {
      const body = await transport.openStream(next.method, next.params, {
        ...options,
        headers: { ...options.headers, ...next.headers },
      })
      for await (const event of eventFrames(body, transport.url, limits)) {
        if (!isNew(event, place)) continue
        losses = 0
        yield event
        if (event.kind === 'status-update' && event.final) return
      }
      if (place.ended) return
    } catch (thrown) {
      options.signal?.throwIfAborted()
      if (!isPassing(thrown)) throw thrown
      if (place.ended) return
      loss = thrown
    }
    losses += 1
    if (place.taskId === undefined || losses > limits.reconnectMax) throw loss
    const waitMs = Math.min(limits.reconnectDelayMs * 2 ** (losses - 1), 5000)
    await delay(waitMs, options.signal)
    next = resumption(place.taskId, place.sequence)
  }
}

/**
 * Notes where the stream stands; false for what was told already. The frame without an event id is the task's present
 * status: it may be ahead of the events that a resumed stream is about to repeat, so there it moves nothing forward.
 */
function isNew(event: WireEvent, place: Place): boolean {
  const { taskId, eventId, sequence } = positionOf(event)
  const known = place.sequence
  const isRepeat =
    sequence !== undefined && known !== undefined && (sequence <= known || eventId === undefined)
  place.taskId = taskId
  if (sequence !== undefined && !isRepeat) place.sequence = sequence
  if (event.kind === 'status-update') {
    const rests = event.final || isPaused(event.status.state)
    place.ended = rests && (sequence ?? 0) <= (place.sequence ?? 0)
  }
  return !isRepeat
}

export function resubscription(taskId: string, afterSequence: number | undefined) {
  return { method: methodOf('resubscribe'), params: writeParams('resubscribe', { taskId, afterSequence }) }
}

function resumption(taskId: string, sequence: number | undefined) {
  const headers = sequence === undefined ? {} : { headers: { 'last-event-id': String(sequence) } }
  return { ...resubscription(taskId, sequence), ...headers }
}

/** Worth another attempt: the connection, or a server that says so (503, 429, a proxy without its upstream). */
function isPassing(thrown: unknown): boolean {
  if (thrown instanceof RpcError) return [429, 502, 503, 504].includes(thrown.status)
  return thrown instanceof ConnectionError
}

function withoutUndefined<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T
}
