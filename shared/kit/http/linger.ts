import type { IncomingMessage } from 'node:http'

/** How long, and how many bytes, of a discarded body are read before its client is cut off. */
const [lingerMs, lingerMaxBytes] = [10_000, 32 * 1024 * 1024]

/**
 * To be called before a request is answered whose body has not arrived in full. A server that closes its connection while
 * the client is still sending resets it, and the answer is lost (RFC 9112, section 9.6). So the rest of the body is read and
 * dropped, and a connection that is to be closed is closed for writing first.
 */
export function linger(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return
  const { socket } = request
  let bytes = 0
  const cut = () => socket.destroy()
  const timer = setTimeout(cut, lingerMs)
  const forget = () => clearTimeout(timer)
  // Node calls it after the last answer of a connection, and it does not wait for what is still to be read.
  socket.destroySoon = () => socket.end()
  socket.once('close', forget)
  request.on('error', () => {})
  // A previous reader may have paused the stream.
  request.unpipe()
  request.once('end', () => {
    forget()
    socket.off('close', forget)
    // What comes next on a connection that stays open is another request.
    socket.destroySoon = Object.getPrototypeOf(socket).destroySoon
    if (socket.writableEnded) cut()
  })
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength
    if (bytes > lingerMaxBytes) cut()
  })
  request.resume()
}
