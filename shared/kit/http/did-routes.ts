import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { isDid } from '../did/did.ts'
import { didDocumentType } from '../did/document.ts'
import { bodyOf, requireJson } from './request-body.ts'

const asked = z.object({ did: z.string().refine(isDid, 'must be a DID') })

/** The document of a DID; undefined where it is not known here. */
export type ResolveDid = (did: string) => object | undefined | Promise<object | undefined>

/** `POST /did/resolve {did}` and `GET /did/resolve?did=`. Public (spec/did.md#resolution). */
export function addDidRoutes(app: FastifyInstance, resolve: ResolveDid): void {
  const answer = async (given: unknown) => {
    const { did } = parseParams(asked, given)
    const document = await resolve(did)
    if (document === undefined) throw new ParleyError('NotFound', { data: { reason: 'did' } })
    // Bytes: to a text Fastify would add a charset.
    return Buffer.from(JSON.stringify(document))
  }
  app.get('/did/resolve', async (request, reply) => {
    const document = await answer(request.query)
    return reply.type(didDocumentType).send(document)
  })
  app.post('/did/resolve', async (request, reply) => {
    requireJson(request)
    const document = await answer(parseJson(bodyOf(request)))
    return reply.type(didDocumentType).send(document)
  })
}
