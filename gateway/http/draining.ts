import type { InnerCalls } from '@parley/kit/auth/inner-calls'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'

/** Routes that respond until the end, so that monitoring sees the shutdown and agents can finish their tasks. */
const stillAnswered =
  /^\/(health|metrics|oauth2\/.*|\.well-known\/oauth-authorization-server.*|registry\/agents\/[^/]+\/(heartbeat|signatures\/[^/]+))$/

/** While the gateway is draining, new requests receive 503 and requests in progress continue, with their inner calls. */
export function refuseWhileDraining(app: FastifyInstance, draining: () => boolean, inner: InnerCalls): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (!draining() || inner.current !== undefined || stillAnswered.test(request.url.split('?', 1)[0] ?? ''))
      done()
    else done(isStopping())
  })
}

const isStopping = () =>
  new ParleyError('Unavailable', {
    message: 'The gateway is stopping',
    data: { reason: 'draining' },
    headers: { 'retry-after': '5' },
  })
