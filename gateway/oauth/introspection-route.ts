import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Provider } from 'oidc-provider'
import { type CheckerOptions, isChecker } from './checker.ts'
import { introspect } from './introspect.ts'

const formMaxBytes = 16 * 1024
const formType = 'application/x-www-form-urlencoded'

export interface IntrospectionRouteOptions extends CheckerOptions {
  provider: Provider
  prefix: string
}

/**
 * The short way for the servers that introspect a token with each of their requests: less than half of the work that
 * oidc-provider does for it. It is only for clients that may check tokens and authenticate by HTTP Basic; whatever else
 * comes, faults included, goes to oidc-provider by `otherwise`, with the body unread.
 */
export function mountIntrospection(
  scope: FastifyInstance,
  options: IntrospectionRouteOptions,
  otherwise: (request: FastifyRequest, reply: FastifyReply) => void,
): void {
  const { provider, prefix } = options
  scope.post(`${prefix}/introspect`, async (request, reply) => {
    const { authorization, 'content-type': type } = request.headers
    if (type?.startsWith(formType) !== true || !(await isChecker(options, authorization))) {
      otherwise(request, reply)
      return reply
    }
    void reply.header('cache-control', 'no-store').type('application/json; charset=utf-8')
    const form = await readForm(request.raw)
    const token = form?.get('token') ?? ''
    // One `token`, and no second way to authenticate beside the header (RFC 6749, section 2.3).
    if (form?.getAll('token').length !== 1 || token === '' || form.has('client_secret')) {
      return reply.code(400).send(JSON.stringify({ error: 'invalid_request' }))
    }
    return reply.send(JSON.stringify(await introspect(provider, token)))
  })
}

/** Undefined when it is too long; the rest is read and dropped. */
async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size <= formMaxBytes) chunks.push(chunk)
  }
  return size > formMaxBytes ? undefined : new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}
