import { hash } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'

/** A request names each agent that it passes through in its path; more are nobody's honest way to an agent. */
const namedMax = 8

/**
 * Notes in `Via` (RFC 9110, section 7.6.3) that a request was here. An agent that leads back to this gateway, under another
 * name of it or by way of another gateway, must not make one request into many: what the gateway has routed is not routed
 * by it again, and a path leads through it a few times at most. Gateways with one PUBLIC_URL are one.
 */
export function addLoopGuard(app: FastifyInstance, publicUrl: string): void {
  const mark = `parley-${hash('sha256', publicUrl, 'hex').slice(0, 16)}`
  app.addHook('onRequest', ({ headers, url }, _reply, done) => {
    const { via } = headers
    headers.via = via === undefined ? `1.1 ${mark}` : `${via}, 1.1 ${mark}`
    const passed = via === undefined ? 0 : via.split(mark).length - 1
    done(passed >= (url.startsWith('/agents/') ? namedMax : 1) ? isLoop() : undefined)
  })
}

const isLoop = () =>
  new ParleyError('Unavailable', {
    message: 'The request came from this gateway: an agent leads back to it',
    data: { reason: 'loop' },
    headers: { 'retry-after': '60' },
  })
