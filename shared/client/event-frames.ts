import { isEvent } from '@parley/wire/codecs/parley/events'
import type { WireEvent } from '@parley/wire/codecs/parley/shapes'
import { createParser } from 'eventsource-parser'
import { ConnectionError, RpcError } from './rpc-error.ts'

export interface FrameLimits {
  /** The longest time without data or heartbeats before the connection counts as lost. Default 60,000. */
  idleTimeoutMs: number
  /** The maximum size of a frame, in characters. Default 134,217,728. */
  frameMaxChars: number
}

/**
 * Yields the events of one SSE response until it ends. Leaving the loop early closes the connection.
 * @throws ConnectionError when the connection fails or is idle for too long, RpcError (code 0) for a frame that is not an event
 */
export async function* eventFrames(
  body: ReadableStream<Uint8Array>,
  url: string,
  limits: FrameLimits,
): AsyncGenerator<WireEvent> {
  const ready: WireEvent[] = []
  let tooLarge = false
  const parser = createParser({
    onEvent: (frame) => ready.push(eventOf(frame.data)),
    onError: (error) => {
      tooLarge ||= error.type === 'max-buffer-size-exceeded'
    },
    maxBufferSize: limits.frameMaxChars,
  })
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await next(reader, url, limits.idleTimeoutMs)
      if (done) return
      parser.feed(decoder.decode(value, { stream: true }))
      if (tooLarge) throw malformed('a frame of the stream is too large')
      yield* ready.splice(0)
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

function eventOf(data: string): WireEvent {
  let event: unknown
  try {
    event = JSON.parse(data)
  } catch {
    throw malformed('a frame of the stream is not JSON')
  }
  if (!isEvent(event)) throw malformed('a frame of the stream is not an event')
  return event
}

function malformed(message: string): RpcError {
  return new RpcError({ code: 0, status: 200, message })
}

async function next(reader: ReadableStreamDefaultReader<Uint8Array>, url: string, idleTimeoutMs: number) {
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the stream was idle for too long')), idleTimeoutMs)
  })
  try {
    return await Promise.race([reader.read(), silence])
  } catch (thrown) {
    throw new ConnectionError(url, thrown)
  } finally {
    clearTimeout(timer)
  }
}
