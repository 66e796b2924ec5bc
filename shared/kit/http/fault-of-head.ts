import type { IncomingMessage } from 'node:http'
import { ParleyError } from '@parley/wire/errors'

/**
 * What is wrong with the head of a request although Node accepts it. Node takes the first of several `Host` or
 * `Authorization` headers and drops the others; a proxy before us may have looked at another, and neither the address nor the
 * caller may depend on that. Versions other than 1.0 and 1.1 are not HTTP/1 (RFC 9112, sections 2.3 and 3.2).
 */
export function faultOfHead(request: IncomingMessage): ParleyError | undefined {
  const { httpVersion, rawHeaders } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return refused('This version of HTTP is not supported: use HTTP/1.1', 'http_version')
  }
  let [hosts, authorizations] = [0, 0]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name.length === 13 && name.toLowerCase() === 'authorization') authorizations += 1
  }
  if (hosts > 1) return refused('The header Host came more than once', 'host')
  if (hosts === 0 && httpVersion === '1.1') return refused('The header Host is missing', 'host')
  return authorizations > 1 ? twoCredentials() : undefined
}

/** Nothing further is read from a connection whose requests two servers may read differently. */
function refused(message: string, reason: string): ParleyError {
  return new ParleyError('InvalidRequest', { message, data: { reason }, headers: { connection: 'close' } })
}

/** RFC 6750, section 3.1, `invalid_request`. */
function twoCredentials(): ParleyError {
  return new ParleyError('InvalidRequest', {
    message: 'The header Authorization came more than once',
    data: { reason: 'authorization' },
    headers: { 'www-authenticate': 'Bearer error="invalid_request"' },
  })
}
