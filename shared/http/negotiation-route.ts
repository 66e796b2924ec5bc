import type { FastifyInstance } from 'fastify'
import { parseJson } from '../jsonrpc/parse-json.ts'
import { negotiationOut } from '../negotiation/answer.ts'
import { negotiate } from '../negotiation/negotiate.ts'
import type { Offer } from '../negotiation/offer.ts'
import { parseNegotiation } from '../negotiation/request.ts'
import { requireJson } from './require-json.ts'

/** Specification, "POST /agent/negotiation": advisory, without a credential, never performs the task. */
export function addNegotiationRoute(app: FastifyInstance, offer: () => Offer): void {
  app.post('/agent/negotiation', async (request) => {
    requireJson(request)
    const wanted = parseNegotiation(parseJson((request.body as Buffer | undefined) ?? Buffer.alloc(0)))
    return negotiationOut(negotiate(offer(), wanted))
  })
}
