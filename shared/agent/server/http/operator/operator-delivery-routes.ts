import { eventsBetween } from '@parley/engine/tasks/task-events'
import { Deliveries, type Delivery } from '@parley/engine/webhooks/deliveries'
import { subjectOf } from '@parley/kit/auth/caller'
import type { Operator } from '@parley/kit/auth/operator-statement'
import { bodyOf } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  agentDeliveryDetail,
  agentDeliveryList,
  type agentDeliveryRow,
  deliveryListQuery,
  resendAnswer,
  resendIn,
  resendSinceIn,
} from '@parley/wire/codecs/answers/operator/deliveries'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { jsonOf } from '@parley/wire/model/json-text'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { byStatement } from './operator-access.ts'
import type { OperatorRoutes } from './operator-routes.ts'
import { webhookSummary } from './task-detail.ts'
import { seesTexts } from './task-row.ts'

const listQuery = deliveryListQuery.omit({ agent: true })
const sinceBody = resendSinceIn.omit({ agent: true })

const list: OperationDescription = {
  summary: 'List the webhooks of all tasks, those set last first',
  ...byStatement,
  query: listQuery,
  responses: { 200: { description: 'A page of webhooks', json: agentDeliveryList } },
}
const detail: OperationDescription = {
  summary: 'One webhook with its newest attempts and the events as they are sent',
  ...byStatement,
  responses: { 200: { description: 'The webhook', json: agentDeliveryDetail } },
  errors: ['NotFound'],
}
const resend: OperationDescription = {
  summary: 'Send settled events of a webhook again',
  ...byStatement,
  body: { json: resendIn, required: false },
  responses: { 200: { description: 'The number of events', json: resendAnswer } },
  errors: ['NotFound', 'Conflict'],
}
const resendDropped: OperationDescription = {
  summary: 'Send the events again that were dropped since a time',
  ...byStatement,
  body: { json: sinceBody },
  responses: { 200: { description: 'The numbers of webhooks and events', json: resendAnswer } },
}

interface ByConfig {
  Params: { task: string; config: string }
}

/** The number of events with a body in one answer, and the size of these bodies. */
const [bodiesMax, bodiesMaxBytes] = [100, 512 * 1024]

/** Adds `/operator/deliveries` (spec/operator.md#deliveries). */
export function addOperatorDeliveryRoutes(
  app: FastifyInstance,
  { services, operatorOf }: Pick<OperatorRoutes, 'services' | 'operatorOf'>,
): void {
  const { registrations, store } = services
  const deliveries = registrations && new Deliveries({ registrations, store })
  const ownerOf = (operator: Operator, given?: string) => {
    const owner = operator.owner ?? given
    return owner === undefined ? {} : { owner }
  }
  app.get('/operator/deliveries', { config: { api: list } }, async (request) => {
    const operator = await operatorOf(request, 'deliveries.read')
    const { task, ...query } = parseParams(listQuery, request.query)
    const owner = ownerOf(operator, query.owner)
    const found =
      deliveries === undefined
        ? { items: [] }
        : task === undefined
          ? await deliveries.list({ ...query, ...owner })
          : { items: await deliveries.ofTask(task, owner.owner) }
    const rows = found.items.map((delivery) => rowOf(delivery, operator))
    const nextCursor = 'nextCursor' in found ? found.nextCursor : undefined
    return { deliveries: rows, next_cursor: nextCursor ?? null }
  })
  app.get<ByConfig>('/operator/deliveries/:task/:config', { config: { api: detail } }, async (request) => {
    const operator = await operatorOf(request, 'deliveries.read')
    const { task, config } = request.params
    const found = await required(deliveries).find(task, config, operator.owner)
    return {
      ...rowOf(found, operator),
      tries: triesOf(found),
      bodies: seesTexts(operator, found.task.owner) ? bodiesOf(found) : [],
    }
  })
  app.post<ByConfig>(
    '/operator/deliveries/:task/:config/resend',
    { config: { api: resend, audit: 'operator.resend' } },
    async (request) => {
      const operator = await operatorOf(request, 'deliveries.resend')
      request.callerId = operator.client
      const { task, config } = request.params
      const { sequence } = parseParams(resendIn, bodyIn(request))
      const given = { ...ownerOf(operator), ...(sequence !== undefined && { sequence }) }
      return { configs: 1, events: await required(deliveries).resend(task, config, given) }
    },
  )
  app.post(
    '/operator/deliveries/resend',
    { config: { api: resendDropped, audit: 'operator.resend' } },
    async (request) => {
      const operator = await operatorOf(request, 'deliveries.resend')
      request.callerId = operator.client
      const { since, until, owner } = parseParams(sinceBody, bodyIn(request))
      const period = { since, ...(until !== undefined && { until }), ...ownerOf(operator, owner) }
      return (await deliveries?.resendDropped(period)) ?? { configs: 0, events: 0 }
    },
  )
}

function bodyIn(request: FastifyRequest): unknown {
  const body = bodyOf(request)
  return body.byteLength === 0 ? {} : parseJson(body)
}

/** @throws ParleyError NotFound */
function required(deliveries: Deliveries | undefined): Deliveries {
  if (deliveries === undefined)
    throw new ParleyError('NotFound', { message: 'This agent has no webhooks', data: { reason: 'delivery' } })
  return deliveries
}

function rowOf({ config, events }: Delivery, operator: Operator): z.output<typeof agentDeliveryRow> {
  const { task, setAt } = config
  return {
    ...webhookSummary(config, { events: { length: events } }, seesTexts(operator, task.owner)),
    task_id: task.id,
    owner: subjectOf(task.owner),
    set_at: setAt,
  }
}

/** Newest first. */
function triesOf({ config: { health } }: Delivery) {
  return (health.tries ?? []).toReversed().map(({ at, sequence, durationMs, status, error, retryMs }) => ({
    at: timestampOf(at * 1000),
    sequence,
    duration_ms: durationMs,
    status: status ?? null,
    error: error ?? null,
    next_attempt_at: retryMs === undefined ? null : timestampOf((at + durationMs + retryMs) * 1000),
  }))
}

/** The bodies of the newest events, without those beyond the size of an answer. */
function bodiesOf({ config, task }: Awaited<ReturnType<Deliveries['find']>>) {
  const codec = dialectNamed(config.dialect)
  const bodies: { sequence: number; settled: boolean; body: unknown; bytes: number }[] = []
  let bytes = 0
  for (let last = task.events.length; last > 0 && bodies.length < bodiesMax; last -= 1) {
    const [event] = eventsBetween(task, last - 1, last)
    if (event === undefined) break
    const text = codec.writeWebhook(event, task)
    const size = Buffer.byteLength(text)
    const isShown = bytes + size <= bodiesMaxBytes
    if (isShown) bytes += size
    const body = isShown ? jsonOf(text) : null
    bodies.push({ sequence: last, settled: last <= config.settled, body, bytes: size })
  }
  return bodies.reverse()
}
