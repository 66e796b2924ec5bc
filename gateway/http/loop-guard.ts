import { hash } from 'node:crypto'
import type { InnerCalls } from '@parley/kit/auth/inner-calls'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'

/** A request may name another agent on each pass through the gateway. This limits the length of such chains. */
const namedMax = 8

/** The name of a gateway in `Via`. */
export function loopMark(publicUrl: string): string {
  return `parley-${hash('sha256', publicUrl, 'hex').slice(0, 16)}`
}

/**
 * Records the gateway in `Via` (RFC 9110, section 7.6.3). An agent may lead back to this gateway under another host
 * name or through another gateway, and such a loop must not multiply requests. A request that the gateway has routed is
 * not routed again, and a request that names agents may pass only a few times. Gateways with the same PUBLIC_URL count
 * as one.
 */
export function addLoopGuard(app: FastifyInstance, publicUrl: string, inner: InnerCalls): void {
  const mark = loopMark(publicUrl)
  app.addHook('onRequest', ({ headers, url }, _reply, done) => {
    // The outer request is recorded.
    if (inner.current !== undefined) return done()
    const { via } = headers
    headers.via = via === undefined ? `1.1 ${mark}` : `${via}, 1.1 ${mark}`
    const passed = via === undefined ? 0 : via.split(mark).length - 1
    done(passed >= (url.startsWith('/agents/') ? namedMax : 1) ? isLoop() : undefined)
  })
}

const isLoop = () =>
  new ParleyError('Unavailable', {
    message: 'Request loop: an agent leads back to this gateway',
    data: { reason: 'loop' },
    headers: { 'retry-after': '60' },
  })
