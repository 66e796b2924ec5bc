import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

/** Limits for reading a discarded request body; beyond them the connection is destroyed. */
const [lingerMs, lingerMaxBytes] = [10_000, 32 * 1024 * 1024]

/**
 * Prepares a lingering close. Call it before responding to a request whose body has not arrived completely. If a
 * server closes the connection while the client is still sending, TCP resets it and the response is lost (RFC 9112,
 * section 9.6). Therefore the rest of the body is read and discarded, and a connection to be closed is half-closed
 * first.
 */
export function linger(request: IncomingMessage): void {
  const { socket } = request
  // An inner request has no connection.
  if (request.complete || request.destroyed || !(socket instanceof Socket)) return
  let bytes = 0
  const cut = () => socket.destroy()
  const timer = setTimeout(cut, lingerMs)
  const stopTimer = () => clearTimeout(timer)
  // Node calls `destroySoon` after the last response of a connection, even if unread data is pending.
  socket.destroySoon = () => socket.end()
  socket.once('close', stopTimer)
  request.on('error', () => {})
  // A previous reader may have paused the stream.
  request.unpipe()
  request.once('end', () => {
    stopTimer()
    socket.off('close', stopTimer)
    // A kept-alive connection continues with the next request.
    socket.destroySoon = Object.getPrototypeOf(socket).destroySoon
    if (socket.writableEnded) cut()
  })
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength
    if (bytes > lingerMaxBytes) cut()
  })
  request.resume()
}
