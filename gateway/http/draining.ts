import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'

/** Answered to the end: who watches the gateway must see that it stops, and agents that finish their work still ask. */
const stillAnswered =
  /^\/(health|metrics|oauth2\/.*|\.well-known\/oauth-authorization-server.*|registry\/agents\/[^/]+\/(heartbeat|signatures\/[^/]+))$/

/** While the gateway drains, requests that come new are refused with 503; those under way go on. */
export function refuseWhileDraining(app: FastifyInstance, draining: () => boolean): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (!draining() || stillAnswered.test(request.url.split('?', 1)[0] ?? '')) done()
    else done(isStopping())
  })
}

const isStopping = () =>
  new ParleyError('Unavailable', {
    message: 'The gateway is stopping',
    data: { reason: 'draining' },
    headers: { 'retry-after': '5' },
  })
