import { requireJson } from '@parley/kit/http/require-json'
import { negotiate } from '@parley/negotiation/score/negotiate'
import type { Offer } from '@parley/negotiation/score/offer'
import { parseNegotiation } from '@parley/negotiation/score/request'
import { answerOut } from '@parley/wire/codecs/parley/negotiation'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance } from 'fastify'

/** `POST /agent/negotiation`: advisory, without a credential, never performs the task (spec/negotiation.md#request). */
export function addNegotiationRoute(app: FastifyInstance, offer: () => Offer): void {
  app.post('/agent/negotiation', async (request) => {
    requireJson(request)
    const wanted = parseNegotiation(parseJson((request.body as Buffer | undefined) ?? Buffer.alloc(0)))
    return answerOut(negotiate(offer(), wanted))
  })
}
