import type { FastifyRequest } from 'fastify'

/**
 * Returns the URL that the caller used. Behind a trusted gateway, it is the agent's address there (`/agents/<slug>`), or
 * the gateway's address for a call that named no agent.
 */
export function baseUrlFor(request: FastifyRequest, baseUrl: string): string {
  const prefix = request.headers['x-forwarded-prefix']
  const isForwarded = (request.ips?.length ?? 0) > 1
  if (!isForwarded || typeof prefix !== 'string' || !/^\/(agents\/[a-z0-9-]{1,63})?$/.test(prefix))
    return baseUrl
  const url = URL.parse(`${request.protocol}://${request.host}${prefix}`)
  return url === null ? baseUrl : url.href.replace(/\/+$/, '')
}
