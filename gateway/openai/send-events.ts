import { Readable } from 'node:stream'
import { stallMs } from '@parley/kit/http/release-when-read'
import type { FastifyReply } from 'fastify'

/** Proxies close connections without traffic. */
const heartbeatMs = 15_000

/** Sends server-sent events, with a comment after 15 seconds without one. */
export function sendEvents(reply: FastifyReply, frames: AsyncIterable<string>): FastifyReply {
  reply.headers({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  // Disconnects a client that does not even read comments.
  reply.raw.setTimeout(stallMs, () => reply.raw.destroy())
  return reply.send(Readable.from(withHeartbeats(frames), { objectMode: false }))
}

async function* withHeartbeats(frames: AsyncIterable<string>): AsyncGenerator<string> {
  const iterator = frames[Symbol.asyncIterator]()
  try {
    for (let next = iterator.next(); ; ) {
      const step = await nextOrHeartbeat(next)
      if (step === 'heartbeat') yield ': keep-alive\n\n'
      else if (step.done === true) return
      else {
        yield step.value
        next = iterator.next()
      }
    }
  } finally {
    // This is not awaited, because a generator that waits for an event ends only after that wait.
    void Promise.resolve(iterator.return?.()).catch(() => {})
  }
}

async function nextOrHeartbeat<Value>(next: Promise<Value>): Promise<Value | 'heartbeat'> {
  const { promise, resolve } = Promise.withResolvers<'heartbeat'>()
  const timer = setTimeout(() => resolve('heartbeat'), heartbeatMs)
  try {
    return await Promise.race([next, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns a signal that is aborted when the client disconnects. */
export function disconnection({ raw }: FastifyReply): AbortSignal {
  const abort = new AbortController()
  if (raw.destroyed) abort.abort()
  else raw.once('close', () => abort.abort())
  return abort.signal
}
