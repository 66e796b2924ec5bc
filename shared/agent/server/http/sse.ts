import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { SlowReaderError, UnreadBudgetExceeded } from '@parley/engine/events/follow-task'
import { stallMs } from '@parley/kit/http/release-when-read'
import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { FrameWriter } from '@parley/wire/codecs/codec'
import { chunksOf, type LazyJson, roughBytesOf, toLazyJson } from '@parley/wire/codecs/lazy-part'
import type { FastifyReply } from 'fastify'

const heartbeatMs = 15_000
/** When the server stops, a stream ends after this time without an event. */
const stopQuietMs = 100
/** The maximum length, in characters, of a frame that is sent in one chunk. */
const smallFrameLength = 64 * 1024

export interface EventStreamOptions<Item> {
  writer: FrameWriter<Item>
  stopping: AbortSignal
  /** Reserves memory for the current frame. If absent, there is no limit. */
  claim?: AnswerClaim | undefined
}

/** Sends events as SSE (spec/streaming.md#frames): JSON `data` lines, an `id` for numbered events, a comment every 15 s. */
export function sendEventStream<Item>(
  reply: FastifyReply,
  items: AsyncIterable<Item>,
  options: EventStreamOptions<Item>,
): FastifyReply {
  reply.headers({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  // Disconnects a client that does not even read heartbeats.
  reply.raw.setTimeout(stallMs, () => reply.raw.destroy())
  // The buffer is small, so that events for a slow client wait in reserved memory and not in this stream.
  const stream = Readable.from(eventStream(items, options), { objectMode: false, highWaterMark: 16 * 1024 })
  return reply.send(stream)
}

type Step<Item> = IteratorResult<Item, unknown> | 'heartbeat' | 'stopping'

export async function* eventStream<Item>(
  items: AsyncIterable<Item>,
  options: EventStreamOptions<Item>,
): AsyncGenerator<string | Buffer> {
  const { stopping, claim } = options
  const iterator = items[Symbol.asyncIterator]()
  const interruption = new Interruption(stopping)
  try {
    let next = iterator.next()
    for (;;) {
      const step = await Promise.race<Step<Item>>([next, interruption.wait()])
      if (step === 'heartbeat') yield ': keep-alive\n\n'
      else if (step === 'stopping') {
        yield* lastFrames(iterator, next, options)
        yield ': the server is stopping\n\n'
        return
      } else if (step.done === true) return
      else {
        const rendered = render(step.value, options)
        if (typeof rendered === 'string') yield rendered
        else yield* chunksOf(rendered)
        claim?.shrink(0)
        next = iterator.next()
      }
    }
  } catch (error) {
    if (error instanceof SlowReaderError)
      yield ': the client reads too slowly, reconnect with Last-Event-ID\n\n'
    else if (error instanceof UnreadBudgetExceeded)
      yield 'retry: 1000\n: too many unread bytes, reconnect with Last-Event-ID\n\n'
    else throw error
  } finally {
    interruption.dispose()
    // This is not awaited, because a generator that is waiting for an event ends only after that wait.
    void Promise.resolve(iterator.return?.()).catch(() => {})
  }
}

/** Sends the events that were committed before the stop. */
async function* lastFrames<Item>(
  iterator: AsyncIterator<Item>,
  first: Promise<IteratorResult<Item, unknown>>,
  options: EventStreamOptions<Item>,
): AsyncGenerator<string | Buffer> {
  for (let next = first; ; next = iterator.next()) {
    const step = await Promise.race([next, delay(stopQuietMs, undefined, { ref: false })])
    if (step === undefined || step.done === true) return
    const rendered = render(step.value, options)
    if (typeof rendered === 'string') yield rendered
    else yield* chunksOf(rendered)
  }
}

/**
 * Renders the frame, as text if it is small. Its memory is reserved until the stream requests the next frame.
 * @throws TooMuchUnread
 */
function render<Item>(item: Item, { writer, claim }: EventStreamOptions<Item>): string | LazyJson {
  const { id, data } = writer.write(item)
  claim?.shrink(0)
  if (claim?.tryReserve(roughBytesOf(data)) === false)
    throw new UnreadBudgetExceeded('the budget for unread bytes is exhausted')
  const json = toLazyJson(
    data,
    writer.writePart,
    (text) => `${id === undefined ? '' : `id: ${id}\n`}data: ${text}\n\n`,
  )
  const [text = ''] = json.texts
  return json.parts.length === 0 && text.length <= smallFrameLength ? text : json
}

/** Ends a wait for a frame. Each wait has a new promise, because a shared promise would retain every frame. */
class Interruption {
  readonly #stopping: AbortSignal
  #timer: NodeJS.Timeout | undefined
  #end: (why: 'heartbeat' | 'stopping') => void = () => {}
  readonly #stop = () => this.#end('stopping')

  constructor(stopping: AbortSignal) {
    this.#stopping = stopping
    stopping.addEventListener('abort', this.#stop)
  }

  wait(): Promise<'heartbeat' | 'stopping'> {
    clearTimeout(this.#timer)
    const { promise, resolve } = Promise.withResolvers<'heartbeat' | 'stopping'>()
    this.#end = resolve
    this.#timer = setTimeout(() => resolve('heartbeat'), heartbeatMs)
    if (this.#stopping.aborted) resolve('stopping')
    return promise
  }

  dispose(): void {
    clearTimeout(this.#timer)
    this.#stopping.removeEventListener('abort', this.#stop)
  }
}
