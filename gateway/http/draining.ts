import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'

/** Routes that respond until the end, so that monitoring sees the shutdown and agents can finish their tasks. */
const stillAnswered =
  /^\/(health|metrics|oauth2\/.*|\.well-known\/oauth-authorization-server.*|registry\/agents\/[^/]+\/(heartbeat|signatures\/[^/]+))$/

/** While the gateway is draining, new requests receive 503 and requests in progress continue. */
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
