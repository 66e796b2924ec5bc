import { type Readable, Transform } from 'node:stream'
import { ParleyError } from '@parley/wire/errors'

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

function tooLarge(): ParleyError {
  return new ParleyError('InvalidRequest', {
    status: 413,
    message: 'Request body is too large',
    // The rest of the body is not read, so the connection cannot be reused.
    headers: { connection: 'close' },
  })
}
