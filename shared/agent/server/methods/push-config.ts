import type { PushConfig } from '@parley/engine/store/webhook-store'
import type { Registrations } from '@parley/engine/webhooks/registrations'
import { fieldNames } from '@parley/wire/codecs/parley/push-config'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal } from '@parley/wire/model/task'
import type { Run, Services } from './method.ts'
import { requireTask } from './tasks.ts'

/** The webhook receives only later events; earlier events are in `tasks/events`. */
export const setPushConfig: Run<'setPushConfig'> = async (services, call) => {
  const registrations = requirePush(services)
  const { taskId, longRunning, pushNotificationConfig } = call.params()
  await requireTask(services, call, taskId)
  await registrations.check(pushNotificationConfig)
  // The task is read again, because events committed while the check resolves a host name are not delivered.
  const task = await requireTask(services, call, taskId)
  const { config } = await registrations.set(task, pushNotificationConfig, {
    longRunning,
    settled: task.events.length,
    open: !isTerminal(task.status.state),
    isNew: false,
  })
  return { result: config }
}

/** Returns the named config, or the one that was set last. */
export const getPushConfig: Run<'getPushConfig'> = async (services, call) => {
  const registrations = requirePush(services)
  const { taskId, pushNotificationConfigId: id } = call.params()
  const task = await requireTask(services, call, taskId)
  const config = id === undefined ? (await registrations.list(task))[0] : await registrations.find(task, id)
  return { result: requireConfig(config, taskId) }
}

export const listPushConfigs: Run<'listPushConfigs'> = async (services, call) => {
  const registrations = requirePush(services)
  const { taskId, limit, cursor } = call.params()
  const task = await requireTask(services, call, taskId)
  const all = await registrations.list(task)
  if (limit === undefined && cursor === undefined) return { result: { items: all } }
  const before = cursor === undefined ? undefined : positionIn(cursor)
  const rest = all
    .sort((a, b) => (positionOf(a) < positionOf(b) ? 1 : -1))
    .filter((config) => before === undefined || positionOf(config) < before)
  const items = rest.slice(0, limit)
  const last = items.at(-1)
  const more = last !== undefined && items.length < rest.length
  return { result: more ? { items, nextCursor: cursorAt(last) } : { items } }
}

/** A cursor holds the position of a config in the list, which its owner knows. */
const positionOf = ({ setAt, id }: PushConfig) => `${setAt} ${id}`
const cursorAt = (config: PushConfig) => Buffer.from(positionOf(config)).toString('base64url')

/** @throws ParleyError InvalidParams */
function positionIn(cursor: string): string {
  const position = Buffer.from(cursor, 'base64url').toString()
  if (/^\d{4}-[^ ]{10,40} [^ ]{1,64}$/.test(position)) return position
  const issues = [{ path: 'cursor', message: 'not a cursor of this list' }]
  throw new ParleyError('InvalidParams', { data: { issues } })
}

/** Removes a config and discards its pending deliveries. */
export const deletePushConfig: Run<'deletePushConfig'> = async (services, call) => {
  const registrations = requirePush(services)
  const { taskId, pushNotificationConfigId, idempotent = false } = call.params()
  const task = await requireTask(services, call, taskId)
  const removed = await registrations.remove(task, pushNotificationConfigId)
  return { result: idempotent ? removed : requireConfig(removed, taskId) }
}

/** @throws ParleyError -32005 with the push-specific name (spec/webhooks.md#capability) */
function requirePush({ registrations }: Services): Registrations {
  if (registrations !== undefined) return registrations
  throw new ParleyError('ContentTypeNotSupported', {
    message: 'Push notifications are not supported',
    data: { name: 'PushNotificationNotSupportedError' },
  })
}

/** Reports that the config, and not the task, is missing (spec/methods.md#taskspushnotificationconfig). */
function requireConfig(config: PushConfig | undefined, taskId: string): PushConfig {
  if (config !== undefined) return config
  throw new ParleyError('TaskNotFound', {
    message: 'Push notification configuration not found for the task',
    data: { taskId, reason: fieldNames.pushConfig },
  })
}
