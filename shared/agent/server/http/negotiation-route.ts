import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import { negotiate } from '@parley/negotiation/score/negotiate'
import type { Offer } from '@parley/negotiation/score/offer'
import { parseNegotiation } from '@parley/negotiation/score/request'
import { answerOut } from '@parley/wire/codecs/parley/negotiation'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance } from 'fastify'

/** Adds `POST /agent/negotiation` (spec/negotiation.md#request), which is public and advisory and never runs a task. */
export function addNegotiationRoute(app: FastifyInstance, offer: () => Offer): void {
  app.post('/agent/negotiation', async (request) => {
    requireJson(request)
    const question = parseNegotiation(parseJson(bodyOf(request)))
    return answerOut(negotiate(offer(), question))
  })
}
