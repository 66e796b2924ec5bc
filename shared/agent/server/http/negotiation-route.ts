import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { negotiate } from '@parley/negotiation/score/negotiate'
import type { Offer } from '@parley/negotiation/score/offer'
import { negotiationRequest, parseNegotiation } from '@parley/negotiation/score/request'
import { agentAnswer } from '@parley/wire/codecs/answers/negotiation'
import { answerOut } from '@parley/wire/codecs/parley/negotiation'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance } from 'fastify'

const api: OperationDescription = {
  summary: 'Ask how well the agent suits a task',
  tag: 'negotiation',
  access: 'public',
  body: { json: negotiationRequest },
  responses: { 200: { description: 'The answer', json: agentAnswer } },
}

/** Adds `POST /agent/negotiation` (spec/negotiation.md#request), which is public and advisory and never runs a task. */
export function addNegotiationRoute(app: FastifyInstance, offer: () => Offer): void {
  app.post('/agent/negotiation', { config: { api } }, async (request) => {
    requireJson(request)
    const question = parseNegotiation(parseJson(bodyOf(request)))
    return answerOut(negotiate(offer(), question))
  })
}
