import { requireScope } from '@parley/kit/auth/authenticate'
import { mayUse } from '@parley/kit/auth/caller'
import { bodyOf } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  deliveryDetail,
  deliveryList,
  deliveryListQuery,
  resendAnswer,
  resendIn,
  resendSinceIn,
} from '@parley/wire/codecs/answers/operator/deliveries'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { TextLooks } from '../text-looks.ts'
import { authenticateView, type CallerView, type ViewParts, viewOf } from '../view.ts'
import type { AgentDeliveries, DeliveryName } from './deliveries.ts'

export interface DeliveryRoutes extends ViewParts {
  deliveries: AgentDeliveries
  looks: TextLooks
}

type Request = FastifyRequest<{ Params: DeliveryName }>

const listApi: OperationDescription = {
  summary: 'List the webhooks of all agents, those set last first',
  tag: 'operator',
  access: 'agent:read',
  query: deliveryListQuery,
  responses: { 200: { description: 'A page of webhooks', json: deliveryList } },
}
const readApi: OperationDescription = {
  summary: 'Read a webhook with its newest attempts and the events as they are sent',
  tag: 'operator',
  access: 'agent:read',
  responses: { 200: { description: 'The webhook', json: deliveryDetail } },
  errors: ['NotFound'],
}
const resent = { description: 'The numbers of webhooks and events that are sent again', json: resendAnswer }
const resendApi: OperationDescription = {
  summary: 'Send events of a webhook again',
  description: 'From a sequence number on; by default the events that were dropped, or else the last one.',
  tag: 'operator',
  access: 'agent:write',
  body: { json: resendIn, required: false },
  responses: { 200: resent },
  errors: ['NotFound', 'Conflict'],
}
const resendSinceApi: OperationDescription = {
  summary: 'Send all events again that were dropped since a time',
  tag: 'operator',
  access: 'agent:write',
  body: { json: resendSinceIn },
  responses: { 200: resent },
}

/** Adds `/operator/deliveries` (spec/operator.md#deliveries). */
export function addDeliveryRoutes(app: FastifyInstance, routes: DeliveryRoutes): void {
  const { deliveries, looks } = routes
  app.get('/operator/deliveries', { config: { api: listApi } }, async (request, reply) => {
    const view = await authenticateView(routes, request)
    return uncached(reply, await deliveries.list(view, parseParams(deliveryListQuery, request.query)))
  })
  app.get(
    '/operator/deliveries/:agent/:task/:config',
    { config: { api: readApi } },
    async (request: Request, reply) => {
      const view = await authenticateView(routes, request)
      const detail = await deliveries.find(view, request.params)
      const isOwn = view.owner !== undefined || detail.owner === view.caller
      if (!isOwn && detail.bodies.length > 0) looks.record(request, `webhook of task ${detail.task_id}`)
      return uncached(reply, detail)
    },
  )
  app.post(
    '/operator/deliveries/:agent/:task/:config/resend',
    { config: { api: resendApi, audit: 'operator.resend' } },
    async (request: Request, reply) => {
      const view = await writingView(routes, request)
      const body = parseParams(resendIn, bodyIn(request))
      return uncached(reply, await deliveries.resend(view, request.params, body))
    },
  )
  app.post(
    '/operator/deliveries/resend',
    { config: { api: resendSinceApi, audit: 'operator.resend' } },
    async (request, reply) => {
      const view = await writingView(routes, request)
      const body = parseParams(resendSinceIn, bodyIn(request))
      request.auditTarget = `since ${body.since}${body.agent === undefined ? '' : ` at ${body.agent}`}`
      return uncached(reply, await deliveries.resendSince(view, body))
    },
  )
}

/** @throws ParleyError InsufficientPermissions for a caller that may only read */
async function writingView(
  { authenticator, config }: ViewParts,
  request: FastifyRequest,
): Promise<CallerView> {
  const caller = await authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  const view = { ...viewOf(caller, config), caller: caller.id, credentials: caller.credentials }
  if (view.owner !== undefined && !mayUse(caller, 'agent:write')) requireScope(caller, 'agent:write')
  return view
}

function bodyIn(request: FastifyRequest): unknown {
  const body = bodyOf(request)
  return body.byteLength === 0 ? {} : parseJson(body)
}

function uncached<T>(reply: FastifyReply, answer: T): T {
  void reply.header('cache-control', 'no-store')
  return answer
}
