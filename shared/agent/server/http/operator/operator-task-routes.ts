import type { AllTasksQuery } from '@parley/engine/store/all-tasks'
import type { TaskOutline } from '@parley/engine/store/store'
import { agentText } from '@parley/engine/tasks/agent-message'
import { ownsFor } from '@parley/kit/auth/caller'
import type { Operator } from '@parley/kit/auth/operator-statement'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { Audit } from '@parley/kit/process/audit'
import {
  agentTaskDetail,
  agentTaskList,
  agentTaskRow,
  taskListQuery,
} from '@parley/wire/codecs/answers/operator/tasks'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { pausedStates, type TaskState, taskStates } from '@parley/wire/model/task'
import { timestampOfServer } from '@parley/wire/model/timestamp'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { byStatement } from './operator-access.ts'
import type { OperatorRoutes } from './operator-routes.ts'
import { taskDetail } from './task-detail.ts'
import { seesOwner, taskRow } from './task-row.ts'

const listQuery = taskListQuery.omit({ agent: true })

const list: OperationDescription = {
  summary: 'List the tasks of all owners by status, newest first',
  ...byStatement,
  query: listQuery,
  responses: { 200: { description: 'A page of tasks', json: agentTaskList } },
}
const detail: OperationDescription = {
  summary: 'One task with its events, runs, webhooks and payments',
  ...byStatement,
  responses: { 200: { description: 'The task', json: agentTaskDetail } },
  errors: ['TaskNotFound'],
}
const cancel: OperationDescription = {
  summary: 'Cancel a task of any owner',
  ...byStatement,
  responses: { 200: { description: 'The canceled task', json: agentTaskRow } },
  errors: ['TaskNotFound', 'TaskNotCancelable'],
}

type ById = { Params: { id: string } }

/** The status text of a task that an operator has canceled. */
export const canceledByOperator = 'An operator canceled this task.'

/** Adds `/operator/tasks` (spec/operator.md#tasks). */
export function addOperatorTaskRoutes(
  app: FastifyInstance,
  { services, operatorOf, log }: OperatorRoutes,
): void {
  const { store, engine } = services
  const audit = new Audit(log)
  app.get('/operator/tasks', { config: { api: list } }, async (request) => {
    const operator = await operatorOf(request, 'tasks.read')
    const query = storeQuery(operator, parseParams(listQuery, request.query))
    if (query.states?.length === 0) return { tasks: [], next_cursor: null }
    const { items, nextCursor = null } = await store.listAllTasks(query)
    return { tasks: items.map((task) => taskRow(services, task, operator)), next_cursor: nextCursor }
  })
  const requireOutline = async (id: string, operator: Operator): Promise<TaskOutline> => {
    const owner = await store.ownerOf(id)
    const isSeen = owner !== undefined && seesOwner(operator, owner)
    const outline = isSeen ? await store.outlineTask(id, owner, () => {}) : undefined
    if (outline === undefined) throw new ParleyError('TaskNotFound', { data: { taskId: id } })
    return outline
  }
  app.get<ById>('/operator/tasks/:id', { config: { api: detail } }, async (request) => {
    const operator = await operatorOf(request, 'tasks.read')
    return taskDetail(services, await requireOutline(request.params.id, operator), operator)
  })
  app.post<ById>('/operator/tasks/:id/cancel', { config: { api: cancel } }, async (request) => {
    const operator = await operatorOf(request, 'tasks.cancel')
    const { id } = request.params
    const { task } = await requireOutline(id, operator)
    const whole = await store.findTask(id, task.owner)
    if (whole === undefined) throw new ParleyError('TaskNotFound', { data: { taskId: id } })
    const isOwn = ownsFor({ id: operator.client }, whole.owner)
    const message = isOwn ? undefined : agentText(whole, canceledByOperator)
    const canceled = await engine.change(whole, () => ({ kind: 'cancel', ...(message && { message }) }))
    audit.record({
      who: operator.client,
      action: 'operator.cancel',
      target: id,
      allowed: true,
      requestId: request.id,
    })
    return taskRow(services, canceled, operator)
  })
}

/** @throws ParleyError InsufficientPermissions if the statement is for another owner */
function storeQuery(operator: Operator, query: z.output<typeof listQuery>): AllTasksQuery {
  const { limit, cursor, since, until, owner = operator.owner, state, waiting, context } = query
  if (owner !== undefined && !seesOwner(operator, owner)) {
    throw new ParleyError('InsufficientPermissions', {
      message: 'The operator statement is for the entries of another owner',
      data: { reason: 'operator_statement' },
    })
  }
  const states = statesOf(state, waiting)
  return {
    limit,
    ...(cursor !== undefined && { cursor }),
    ...(owner !== undefined && { owner }),
    ...(context !== undefined && { contextId: context }),
    ...(states !== undefined && { states }),
    ...(since !== undefined && { since: timestampOfServer(since) }),
    ...(until !== undefined && { until: timestampOfServer(until) }),
  }
}

/** Unknown states match no task, because another version may have more states. */
function statesOf(state: string | undefined, waiting: boolean | undefined): TaskState[] | undefined {
  if (state === undefined && waiting === undefined) return undefined
  const named = state?.split(',').map((name) => name.trim())
  const isPaused = (one: TaskState) => pausedStates.some((paused) => paused === one)
  return taskStates.filter(
    (one) => (named?.includes(one) ?? true) && (waiting === undefined || isPaused(one) === waiting),
  )
}
