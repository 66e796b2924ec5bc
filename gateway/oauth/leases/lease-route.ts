import type { IncomingMessage } from 'node:http'
import { leaseGrantSchema, leasePath, leasePollSchema } from '@parley/kit/auth/lease-protocol'
import type { OperationDescription } from '@parley/kit/http/route-description'
import type { FastifyInstance } from 'fastify'
import { oauthErrors } from '../descriptions/errors.ts'
import { type IntrospectionClientOptions, introspectionClient } from '../introspection-client.ts'
import type { Leases } from './leases.ts'

const bodyMaxBytes = 4096

export interface LeaseRouteOptions extends IntrospectionClientOptions {
  prefix: string
  leases: Leases
}

const api: OperationDescription = {
  summary: 'Keep cached introspection responses valid',
  description: 'For the clients of admitted agents. The request waits until a response becomes invalid.',
  tag: 'oauth',
  access: 'basic',
  body: { json: leasePollSchema },
  responses: { 200: { description: 'A lease', json: leaseGrantSchema } },
  errors: ['AuthenticationRequired'],
  ...oauthErrors,
}

/**
 * Adds `POST /oauth2/introspection-leases`, which servers poll that cache introspection responses. Only clients that may
 * introspect can use it.
 */
export function mountLeases(scope: FastifyInstance, options: LeaseRouteOptions): void {
  const { prefix, leases } = options
  scope.post(`${prefix}/${leasePath}`, { config: { api } }, async (request, reply) => {
    void reply.header('cache-control', 'no-store').type('application/json; charset=utf-8')
    const client = await introspectionClient(options, request.headers.authorization)
    if (client === undefined) {
      void reply.code(401).header('www-authenticate', 'Basic realm="introspection"')
      return JSON.stringify({ error: 'invalid_client' })
    }
    const poll = leasePollSchema.safeParse(await readJson(request.raw))
    if (!poll.success) {
      void reply.code(400)
      return JSON.stringify({ error: 'invalid_request', error_description: 'the poll is malformed' })
    }
    await leases.prepare(poll.data.applied?.seq)
    const disconnected = new AbortController()
    const abort = () => disconnected.abort()
    reply.raw.once('close', abort)
    if (reply.raw.closed) abort()
    return JSON.stringify(await leases.grantor.poll(client, poll.data, disconnected.signal))
  })
  scope.addHook('preClose', (done) => {
    leases.grantor.stop()
    done()
  })
}

/** Returns undefined if the body is too long or not JSON. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.byteLength
    if (size <= bodyMaxBytes) chunks.push(chunk)
  }
  if (size > bodyMaxBytes) return undefined
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    return undefined
  }
}
