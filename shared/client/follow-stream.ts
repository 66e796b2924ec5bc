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
  /** The number of consecutive reconnections without a new event after which the stream fails. Default 8. */
  reconnectMax: number
  /** The delay before the first reconnection, which doubles each time up to 5 seconds. Default 200. */
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

/** The position of a stream. */
interface Progress {
  taskId: string | undefined
  /** The number of the last numbered event. */
  sequence: number | undefined
  /** Whether the task has ended or paused, so that no further event is expected. */
  ended: boolean
}

/**
 * Yields a task's events and reconnects when the connection is lost. A message is never sent twice, so a connection that is
 * lost before the first event is an error.
 */
export async function* followStream(
  transport: Transport,
  opening: Opening,
  options: CallOptions,
  given: Partial<FollowLimits>,
): AsyncGenerator<WireEvent> {
  const limits: FollowLimits = {
    idleTimeoutMs: given.idleTimeoutMs ?? defaults.idleTimeoutMs,
    frameMaxChars: given.frameMaxChars ?? defaults.frameMaxChars,
    reconnectMax: given.reconnectMax ?? defaults.reconnectMax,
    reconnectDelayMs: given.reconnectDelayMs ?? defaults.reconnectDelayMs,
  }
  const progress: Progress = { taskId: opening.taskId, sequence: opening.afterSequence, ended: false }
  let next: { method: string; params: object; headers?: Record<string, string> } = opening
  for (let losses = 0; ; ) {
    let loss: unknown = new ConnectionError(transport.url, 'the stream ended before its task')
    try {
      const body = await transport.openStream(next.method, next.params, {
        ...options,
        headers: { ...options.headers, ...next.headers },
      })
      for await (const event of eventFrames(body, transport.url, limits)) {
        if (!isNew(event, progress)) continue
        losses = 0
        yield event
        if (event.kind === 'status-update' && event.final) return
      }
      if (progress.ended) return
    } catch (thrown) {
      options.signal?.throwIfAborted()
      if (!isTransient(thrown)) throw thrown
      if (progress.ended) return
      loss = thrown
    }
    losses += 1
    if (progress.taskId === undefined || losses > limits.reconnectMax) throw loss
    const waitMs = Math.min(limits.reconnectDelayMs * 2 ** (losses - 1), 5000)
    await delay(waitMs, options.signal)
    next = resumption(progress.taskId, progress.sequence)
  }
}

/**
 * Updates the progress; returns false for a repeated event. A frame without an event ID contains the current status of the
 * task. It may be ahead of the events that a resumed stream has yet to send, so it does not advance the sequence.
 */
function isNew(event: WireEvent, progress: Progress): boolean {
  const { taskId, eventId, sequence } = positionOf(event)
  const known = progress.sequence
  const isRepeat =
    sequence !== undefined && known !== undefined && (sequence <= known || eventId === undefined)
  progress.taskId = taskId
  if (sequence !== undefined && !isRepeat) progress.sequence = sequence
  if (event.kind === 'status-update') {
    const rests = event.final || isPaused(event.status.state)
    progress.ended = rests && (sequence ?? 0) <= (progress.sequence ?? 0)
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

/** Whether reconnecting may help, because the connection failed or the server or a proxy is temporarily unavailable. */
function isTransient(thrown: unknown): boolean {
  if (thrown instanceof RpcError) return [429, 502, 503, 504].includes(thrown.status)
  return thrown instanceof ConnectionError
}
