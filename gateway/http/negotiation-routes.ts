import { type Authenticator, requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import type { Caller } from '@parley/kit/auth/caller'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import { addressOf } from '@parley/kit/http/request-limits'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { negotiationRequest, parseNegotiation } from '@parley/negotiation/score/request'
import { gatewayAnswer, routingRecordAnswer } from '@parley/wire/codecs/answers/negotiation'
import { gatewayAnswerOut } from '@parley/wire/codecs/parley/negotiation'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { CallerAccess } from '../registry/caller-access.ts'
import { decisionsKeptMs } from '../routing/negotiation/decisions.ts'
import type { Negotiator } from '../routing/negotiation/negotiator.ts'

export interface NegotiationRoutes {
  negotiator: Negotiator
  authenticator: Authenticator
  access: CallerAccess
}

const more = z.object({ limit: z.int().min(1).max(100).optional() })

const negotiate: OperationDescription = {
  summary: 'Find the best agent for a task',
  tag: 'negotiation',
  access: 'optional',
  body: { json: z.intersection(negotiationRequest, more) },
  responses: {
    200: {
      description: 'The best agent and the other candidates',
      json: gatewayAnswer,
      headers: { 'x-negotiation-id': 'The ID of the decision' },
    },
  },
}

const readDecision: OperationDescription = {
  summary: 'Read why an agent was chosen',
  tag: 'negotiation',
  access: 'optional',
  responses: { 200: { description: 'The decision', json: routingRecordAnswer } },
}

/** Adds `POST /agent/negotiation` over all agents and the routes of its decisions (spec/negotiation.md#gateway). */
export function addNegotiationRoutes(app: FastifyInstance, routes: NegotiationRoutes): void {
  const { negotiator, access } = routes
  app.post('/agent/negotiation', { config: { api: negotiate } }, async (request, reply) => {
    requireJson(request)
    const bytes = bodyOf(request)
    const caller = await callerOf(routes, request, bytes)
    const body = parseJson(bytes)
    const wanted = parseNegotiation(body)
    const { limit } = parseParams(more, body)
    const question = {
      wanted,
      owner: caller?.id,
      agents: await access.agentsFor(caller),
      address: addressOf(request),
      method: 'agent/negotiation',
      ...(limit !== undefined && { limit }),
    }
    const decision = await negotiator.decide(question)
    await negotiator.recordInBackground(decision, question)
    void reply.header('x-negotiation-id', decision.id).header('cache-control', 'no-store')
    return gatewayAnswerOut(decision.answer)
  })
  app.get<{ Params: { id: string } }>(
    '/negotiations/:id',
    { config: { api: readDecision } },
    async (request, reply) => {
      const caller = await callerOf(routes, request)
      if (caller !== undefined) requireScope(caller, 'agent:read')
      const { id } = request.params
      const record = /^[\da-f]{32}$/.test(id) ? await negotiator.findRecord(id) : undefined
      const isTheirs = record?.owner === undefined || record.owner === caller?.id
      if (record === undefined || !isTheirs || record.at + decisionsKeptMs <= Date.now()) throw notFound()
      void reply.header('cache-control', 'no-store')
      return record.body
    },
  )
}

/** Returns the caller. Authentication is optional, but a token that is sent must be valid. */
async function callerOf(
  { authenticator }: NegotiationRoutes,
  request: FastifyRequest,
  bytes?: Buffer,
): Promise<Caller | undefined> {
  if (request.headers.authorization === undefined) return undefined
  const caller = await authenticator.authenticate(request, bytes)
  request.callerId = caller.id
  requireNoDelegate(caller)
  return caller
}

const notFound = () =>
  new ParleyError('NotFound', { message: 'Negotiation not found', data: { reason: 'negotiation' } })
