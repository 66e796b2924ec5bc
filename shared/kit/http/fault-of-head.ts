import type { IncomingMessage } from 'node:http'
import { ParleyError } from '@parley/wire/errors'

/**
 * Rejects request heads that Node accepts. If `Host` or `Authorization` is repeated, Node uses the first value and
 * drops the others, while a proxy in front may use another one; the two would then disagree about the address or the
 * caller. HTTP versions other than 1.0 and 1.1 are also rejected (RFC 9112, sections 2.3 and 3.2).
 * @returns the error to send, or undefined if the head is valid
 */
export function faultOfHead(request: IncomingMessage): ParleyError | undefined {
  const { httpVersion, rawHeaders } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return malformedHead('This HTTP version is not supported: use HTTP/1.1', 'http_version')
  }
  let [hosts, authorizations] = [0, 0]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name.length === 13 && name.toLowerCase() === 'authorization') authorizations += 1
  }
  if (hosts > 1) return malformedHead('The request has more than one Host header', 'host')
  if (hosts === 0 && httpVersion === '1.1') return malformedHead('The Host header is missing', 'host')
  return authorizations > 1 ? duplicateAuthorization() : undefined
}

/** Closes the connection, because another server may parse its requests differently. */
function malformedHead(message: string, reason: string): ParleyError {
  return new ParleyError('InvalidRequest', { message, data: { reason }, headers: { connection: 'close' } })
}

/** Returns the `invalid_request` error of RFC 6750, section 3.1. */
function duplicateAuthorization(): ParleyError {
  return new ParleyError('InvalidRequest', {
    message: 'The request has more than one Authorization header',
    data: { reason: 'authorization' },
    headers: { 'www-authenticate': 'Bearer error="invalid_request"' },
  })
}
