import type { OperationDescription } from '@parley/kit/http/route-description'
import { overviewAnswer } from '@parley/wire/codecs/answers/operator/console'
import { queueAnswer, waitingAnswer, waitingQuery } from '@parley/wire/codecs/answers/operator/tasks'
import { parseParams } from '@parley/wire/codecs/parley/params'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { readQueues } from '../tasks/queue.ts'
import type { TaskLists } from '../tasks/task-list.ts'
import { listWaiting } from '../tasks/waiting.ts'
import type { TextLooks } from '../text-looks.ts'
import { authenticateOperator, authenticateView, type ViewParts } from '../view.ts'
import { type OverviewSources, readOverview } from './overview.ts'

export interface OverviewRoutes extends ViewParts {
  sources: OverviewSources
  lists: TaskLists
  looks: TextLooks
}

const queueQuery = z.object({ agent: z.string().max(200).optional().describe('The slug of an agent') })

const overviewApi: OperationDescription = {
  summary: 'Read what the agents do now, and what needs attention',
  tag: 'operator',
  access: 'agent:admin',
  responses: { 200: { description: 'The overview', json: overviewAnswer } },
}
const queueApi: OperationDescription = {
  summary: 'Read the queues of the agents',
  tag: 'operator',
  access: 'agent:admin',
  query: queueQuery,
  responses: { 200: { description: 'The agents, those with the longest queue first', json: queueAnswer } },
  errors: ['NotFound'],
}
const waitingApi: OperationDescription = {
  summary: 'List the tasks and agents that wait for a person',
  tag: 'operator',
  access: 'agent:read',
  query: waitingQuery,
  responses: {
    200: { description: 'A page of tasks, and the agents that wait for admission', json: waitingAnswer },
  },
  errors: ['NotFound'],
}

/** Adds `/operator/overview`, `/operator/queue` and `/operator/waiting` (spec/operator.md#overview). */
export function addOverviewRoutes(app: FastifyInstance, routes: OverviewRoutes): void {
  const { sources, lists, looks } = routes
  app.get('/operator/overview', { config: { api: overviewApi } }, async (request, reply) => {
    const view = await authenticateOperator(routes, request)
    void reply.header('cache-control', 'no-store')
    return readOverview(sources, view)
  })
  app.get('/operator/queue', { config: { api: queueApi } }, async (request, reply) => {
    const view = await authenticateOperator(routes, request)
    const { agent } = parseParams(queueQuery, request.query)
    void reply.header('cache-control', 'no-store')
    return readQueues(sources, view, { agent })
  })
  app.get('/operator/waiting', { config: { api: waitingApi } }, async (request, reply) => {
    const view = await authenticateView(routes, request)
    const { registry } = sources
    const page = await listWaiting({ lists, registry }, view, parseParams(waitingQuery, request.query))
    const isOthers = page.tasks.some(
      ({ owner, text, question }) => owner !== view.caller && (text ?? question) !== null,
    )
    if (view.owner === undefined && isOthers) looks.recordList(request, 'waiting')
    void reply.header('cache-control', 'no-store')
    return page
  })
}
