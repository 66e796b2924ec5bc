import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isDid } from '../did/did.ts'
import { didDocumentAnswer, didDocumentType } from '../did/document.ts'
import { bodyOf, requireJson } from './request-body.ts'
import type { OperationDescription } from './route-description.ts'

const didParams = z.object({ did: z.string().refine(isDid, 'must be a DID') })

const resolved = {
  summary: 'Resolve a DID',
  description:
    'Returns the DID document of an agent. The gateway resolves the DIDs of all agents that the caller may see.',
  tag: 'identity',
  access: 'optional',
  responses: { 200: { description: 'The DID document', content: { [didDocumentType]: didDocumentAnswer } } },
  errors: ['NotFound'],
} satisfies OperationDescription

/** Returns the document of a DID, or undefined if this server does not know the DID. */
export type ResolveDid = (
  did: string,
  request: FastifyRequest,
) => object | undefined | Promise<object | undefined>

/** `POST /did/resolve {did}` and `GET /did/resolve?did=`. Public (spec/did.md#resolution). */
export function addDidRoutes(app: FastifyInstance, resolve: ResolveDid): void {
  const didDocument = async (params: unknown, request: FastifyRequest) => {
    const { did } = parseParams(didParams, params)
    const document = await resolve(did, request)
    if (document === undefined) throw new ParleyError('NotFound', { data: { reason: 'did' } })
    // Sent as bytes, because Fastify adds a charset to a string.
    return Buffer.from(JSON.stringify(document))
  }
  app.get('/did/resolve', { config: { api: { ...resolved, query: didParams } } }, async (request, reply) => {
    const document = await didDocument(request.query, request)
    return reply.type(didDocumentType).send(document)
  })
  app.post(
    '/did/resolve',
    { config: { api: { ...resolved, body: { json: didParams } } } },
    async (request, reply) => {
      requireJson(request)
      const document = await didDocument(parseJson(bodyOf(request)), request)
      return reply.type(didDocumentType).send(document)
    },
  )
}
