import { type Readable, Transform } from 'node:stream'
import { ParleyError } from '@parley/wire/errors'
import { joined } from './exchange.ts'

/** @throws ParleyError InvalidRequest (413) if the announced length exceeds the limit */
export function checkLength(contentLength: string | undefined, maxBytes: number): void {
  if (contentLength !== undefined && Number(contentLength) > maxBytes) throw tooLarge()
}

/** Forwards the body and fails with 413 at the limit. A reader that stops early does not end the client's connection. */
export function limited(body: Readable, maxBytes: number): Readable {
  let size = 0
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.byteLength
      if (size > maxBytes) done(tooLarge())
      else done(null, chunk)
    },
  })
  body.once('error', (error) => counter.destroy(error))
  counter.once('close', () => body.unpipe(counter))
  return body.pipe(counter)
}

/**
 * Reads a body. Resolves with the first bytes of a longer one, which remain in the stream, and with undefined if the client
 * disconnected before.
 */
export function readUpTo(
  body: Readable,
  maxBytes: number,
): Promise<{ bytes: Buffer; isWhole: boolean } | undefined> {
  const { promise, resolve } = Promise.withResolvers<{ bytes: Buffer; isWhole: boolean } | undefined>()
  if (body.destroyed) return Promise.resolve(undefined)
  const chunks: Buffer[] = []
  let size = 0
  const gone = () => resolve(undefined)
  const read = (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size <= maxBytes) return
    body.off('data', read).pause()
    const bytes = joined(chunks)
    body.unshift(bytes)
    resolve({ bytes, isWhole: false })
  }
  body.on('data', read)
  body.once('end', () => resolve({ bytes: joined(chunks), isWhole: true }))
  // The listener remains, because a stream without a reader could emit an error without a listener.
  body.once('error', gone).once('close', gone)
  return promise
}

export function tooLarge(): ParleyError {
  return new ParleyError('InvalidRequest', {
    status: 413,
    message: 'Request body is too large',
    // The rest of the body is not read, so the connection cannot be reused.
    headers: { connection: 'close' },
  })
}
