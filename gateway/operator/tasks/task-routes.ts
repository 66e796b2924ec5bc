import { requireScope } from '@parley/kit/auth/authenticate'
import { mayUse } from '@parley/kit/auth/caller'
import { bodyOf } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  canceledTask,
  type taskDetail as detailSchema,
  taskDetail,
  taskList,
  taskListQuery,
} from '@parley/wire/codecs/answers/operator/tasks'
import { parseParams } from '@parley/wire/codecs/parley/params'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { TextLooks } from '../text-looks.ts'
import { authenticateView, type CallerView, type ViewParts, viewOf } from '../view.ts'
import type { TaskDetails } from './task-detail.ts'
import type { TaskLists } from './task-list.ts'

export interface TaskRoutes extends ViewParts {
  lists: TaskLists
  details: TaskDetails
  looks: TextLooks
}

const ofAgent = z.object({
  agent: z.string().max(200).optional().describe('The slug of the agent that has the task'),
})
type Detail = z.output<typeof detailSchema>
type Request = FastifyRequest<{ Params: { id: string } }>

const listApi: OperationDescription = {
  summary: 'List the tasks of all agents, newest first',
  tag: 'operator',
  access: 'agent:read',
  query: taskListQuery,
  responses: { 200: { description: 'A page of tasks', json: taskList } },
}
const readApi: OperationDescription = {
  summary: 'Read a task with its events, webhooks, payments and chain',
  tag: 'operator',
  access: 'agent:read',
  query: ofAgent,
  responses: { 200: { description: 'The task', json: taskDetail } },
  errors: ['TaskNotFound'],
}
const cancelApi: OperationDescription = {
  summary: 'Cancel a task of any owner',
  tag: 'operator',
  access: 'agent:write',
  query: ofAgent,
  responses: { 200: { description: 'The canceled task', json: canceledTask } },
  errors: ['TaskNotFound', 'TaskNotCancelable'],
}

/** Adds `/operator/tasks` (spec/operator.md#tasks). */
export function addTaskRoutes(app: FastifyInstance, routes: TaskRoutes): void {
  const { lists, details, looks, authenticator, config } = routes
  app.get('/operator/tasks', { config: { api: listApi } }, async (request, reply) => {
    const view = await authenticateView(routes, request)
    const page = await lists.list(view, parseParams(taskListQuery, request.query))
    if (page.tasks.some((row) => showsOthersTexts(view, row))) looks.recordList(request, 'tasks')
    return uncached(reply, page)
  })
  app.get('/operator/tasks/:id', { config: { api: readApi } }, async (request: Request, reply) => {
    const view = await authenticateView(routes, request)
    const { agent } = parseParams(ofAgent, request.query)
    const detail = await details.read(view, request.params.id, agent)
    if (showsOthersTexts(view, detail)) looks.record(request, `task ${detail.task_id}`)
    return uncached(reply, detail)
  })
  const cancel = { config: { api: cancelApi, audit: 'operator.cancel_task' } }
  app.post('/operator/tasks/:id/cancel', cancel, async (request: Request, reply) => {
    const caller = await authenticator.authenticate(request, bodyOf(request))
    request.callerId = caller.id
    const view = { ...viewOf(caller, config), caller: caller.id, credentials: caller.credentials }
    if (view.owner !== undefined && !mayUse(caller, 'agent:write')) requireScope(caller, 'agent:write')
    const { agent } = parseParams(ofAgent, request.query)
    request.auditTarget = request.params.id
    return uncached(reply, await details.cancel(view, request.params.id, agent))
  })
}

/** Whether the answer contains texts of others, which is written to the audit log. */
function showsOthersTexts(
  { caller, owner: onlyOwner }: CallerView,
  { owner, text, reason, ...more }: Pick<Detail, 'owner' | 'text' | 'reason'> & Partial<Pick<Detail, 'task'>>,
): boolean {
  if (onlyOwner !== undefined || owner === caller) return false
  return text !== null || reason !== null || (more.task ?? null) !== null
}

function uncached<T>(reply: FastifyReply, answer: T): T {
  void reply.header('cache-control', 'no-store')
  return answer
}
