import { z } from 'zod'
import { ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import { taskStates } from '../../model/task.ts'
import { jsonObject, messageIn, uuid } from './message.ts'
import { pushNotificationConfig } from './push-config.ts'
import { wireObject } from './spelling.ts'

/** The names that the task ID may have in params. */
const anyOfTaskId = { taskId: ['id'] }

export const messageSend = wireObject({
  message: messageIn,
  configuration: wireObject({
    acceptedOutputModes: z.array(z.string().max(256)).max(100).optional(),
    longRunning: z.boolean().optional(),
    pushNotificationConfig: pushNotificationConfig.optional(),
    // The maximum delay that a timer supports.
    deadlineMs: z.int().min(1).max(2_147_483_647).optional(),
    waitMs: z.int().min(0).max(2_147_483_647).optional(),
  }).optional(),
})

const historyLength = z.int().min(0).optional()

export const taskGet = wireObject({ taskId: uuid, historyLength }, anyOfTaskId)
export const taskCancel = wireObject({ taskId: uuid }, anyOfTaskId)
export const taskResubscribe = wireObject(
  { taskId: uuid, afterSequence: z.int().min(0).optional() },
  anyOfTaskId,
)

const page = {
  limit: z.int().min(1).max(1000).default(1000),
  cursor: z.string().max(1024).optional(),
}
export const tasksList = wireObject({
  ...page,
  contextId: uuid.optional(),
  state: z.enum(taskStates).optional(),
  historyLength,
}).transform(({ state, ...rest }) => (state === undefined ? rest : { ...rest, states: [state] }))
export const contextsList = wireObject(page)
export const contextsClear = wireObject({ contextId: uuid })

export const tasksFeedback = wireObject(
  {
    taskId: uuid,
    feedback: z.string().max(10_000),
    rating: z.int().min(1).max(5).optional(),
    metadata: jsonObject.optional(),
  },
  anyOfTaskId,
)
export const noParams = wireObject({})

export const pushConfigSet = wireObject(
  { taskId: uuid, longRunning: z.boolean().default(false), pushNotificationConfig },
  anyOfTaskId,
)
export const pushConfigGet = wireObject(
  { taskId: uuid, pushNotificationConfigId: uuid.optional() },
  anyOfTaskId,
)
export const pushConfigList = wireObject({ taskId: uuid }, anyOfTaskId)
export const pushConfigDelete = wireObject({ taskId: uuid, pushNotificationConfigId: uuid }, anyOfTaskId)

export const taskEvents = wireObject(
  {
    taskId: uuid,
    afterSequence: z.int().min(0).default(0),
    limit: z.int().min(1).max(1000).default(100),
  },
  anyOfTaskId,
)

const ofTask = wireObject({ taskId: uuid }, anyOfTaskId)

/** @throws ParleyError InvalidParams */
export function readTaskId(params: Record<string, unknown>): string {
  return parseParams(ofTask, params).taskId
}

/** Params of this dialect name no agent; the path does. */
export function readTenant(): undefined {
  return undefined
}

export function readCursor(params: Record<string, unknown>): unknown {
  return params['cursor']
}

export function writeCursor(
  { cursor: _replaced, ...params }: Record<string, unknown>,
  cursor: string | undefined,
): Record<string, unknown> {
  return cursor === undefined ? params : { ...params, cursor }
}

export function readQuery(params: Record<string, unknown>): unknown {
  const configuration = params['configuration']
  return isObject(configuration) ? configuration['negotiation'] : undefined
}

const rated = wireObject({ rating: z.int().min(1).max(5).optional().catch(undefined) })

export function readRating(params: Record<string, unknown>): number | undefined {
  return parseParams(rated, params).rating
}

/** @throws ParleyError InvalidParams with `data.issues [{path, message}]`; the issues do not repeat the caller's values */
export function parseParams<T extends z.ZodType>(schema: T, params: unknown): z.output<T> {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues
    .slice(0, 20)
    .map((issue) => ({ path: issue.path.join('.'), message: issue.message }))
  throw new ParleyError('InvalidParams', { data: { issues } })
}
