import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type InteractionOptions, mountInteraction } from './approval/interaction.ts'
import { type ClientRouteOptions, mountClientMetadata } from './client-route.ts'
import { endpoints, serverMetadata } from './descriptions/endpoints.ts'
import { type IntrospectionRouteOptions, mountIntrospection } from './introspection-route.ts'
import { type LeaseRouteOptions, mountLeases } from './leases/lease-route.ts'
import { markAtOrigin } from './origin-issuer.ts'
import { setAddress } from './request-address.ts'

/** The same limit as that of oidc-provider. */
const bodyMaxBytes = 56 * 1024
/** The metadata of RFC 8414, and that of OpenID Connect Discovery, which some clients read in its place. */
const wellKnown = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']

export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void

/** Returns a listener for requests below the issuer's path. oidc-provider's `callback` expects paths without it. */
export function listenerFor(issuer: string, callback: NodeListener): NodeListener {
  const { host, protocol, pathname } = new URL(issuer)
  const prefix = pathname.replace(/\/+$/, '')
  return (request, response) => {
    pinOrigin(request, host, protocol)
    const [path = '/'] = request.url?.split('?', 1) ?? []
    if (prefix !== '' && wellKnown.includes(path)) markAtOrigin(request)
    const url = innerUrl(request.url ?? '/', prefix)
    request.url = url
    Object.assign(request, { originalUrl: prefix + url })
    if (Number(request.headers['content-length'] ?? 0) > bodyMaxBytes) refuseTooLarge(response)
    else callback(request, response)
  }
}

/** Adds the OAuth server's routes: everything below the issuer's path, and the metadata at the root for both issuers. */
export function mountOAuth(
  app: FastifyInstance,
  options: InteractionOptions &
    IntrospectionRouteOptions &
    LeaseRouteOptions &
    ClientRouteOptions & { listener: NodeListener },
): void {
  const { prefix, listener } = options
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    void scope.register(async (pages) => {
      pages.addHook('onRequest', async (request) => pinRaw(request, options.provider.issuer))
      mountInteraction(pages, options)
    })
    // The body is not read here, because oidc-provider reads it from the socket.
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    const hand = (request: FastifyRequest, reply: FastifyReply) => {
      for (const [name, value] of Object.entries(reply.getHeaders())) {
        // Some pages of oidc-provider contain inline scripts (`response_mode=form_post`).
        if (value !== undefined && name !== 'content-security-policy') reply.raw.setHeader(name, value)
      }
      reply.hijack()
      setAddress(request.raw, request.ip)
      listener(request.raw, reply.raw)
    }
    mountIntrospection(scope, options, hand)
    mountLeases(scope, options)
    mountClientMetadata(scope, options)
    const method = ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS']
    scope.route({ method, url: `${prefix}/*`, config: { api: () => endpoints(prefix) }, handler: hand })
    for (const url of new Set(wellKnown.flatMap((path) => [path, path + prefix]))) {
      const api = () => ({ covers: { [url]: { get: serverMetadata } } })
      scope.route({ method: ['GET', 'OPTIONS'], url, config: { api }, handler: hand })
    }
  })
}

function pinRaw(request: FastifyRequest, issuer: string): void {
  const { host, protocol } = new URL(issuer)
  pinOrigin(request.raw, host, protocol)
}

/**
 * Makes all published URLs derive from the issuer. The request's Host and forwarding headers are replaced, because
 * oidc-provider would trust them.
 */
function pinOrigin(request: IncomingMessage, host: string, protocol: string): void {
  const { headers } = request
  for (const name of ['forwarded', 'x-forwarded-for', 'x-forwarded-prefix']) delete headers[name]
  headers.host = host
  headers['x-forwarded-host'] = host
  headers['x-forwarded-proto'] = protocol.slice(0, -1)
}

function innerUrl(url: string, prefix: string): string {
  const [path = '/', ...query] = url.split('?')
  const document = wellKnown.find((one) => path === one || path === one + prefix)
  if (document !== undefined) return document
  const inner = path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : '/'
  return query.length === 0 ? inner : `${inner}?${query.join('?')}`
}

/** Responds with 413 without reading the rest of the body. */
function refuseTooLarge(response: ServerResponse): void {
  const body = JSON.stringify({ error: 'invalid_request', error_description: 'request body is too large' })
  response
    .writeHead(413, { 'content-type': 'application/json; charset=utf-8', connection: 'close' })
    .end(body)
}
