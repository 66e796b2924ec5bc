import type { PushConfig } from '@parley/engine/store/webhook-store'
import type { Registrations } from '@parley/engine/webhooks/registrations'
import {
  parseParams,
  pushConfigDelete,
  pushConfigGet,
  pushConfigList,
  pushConfigSet,
} from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal } from '@parley/wire/model/task'
import type { Answer, Call, Services } from './method.ts'
import { pushConfigOut } from './push-config-out.ts'
import { requireTask } from './tasks.ts'

/** Events from this moment on; on an ended task none (the log of `tasks/events` has them all). */
export async function setPushConfig(services: Services, call: Call): Promise<Answer> {
  const registrations = requirePush(services)
  const { taskId, longRunning, pushNotificationConfig } = parseParams(pushConfigSet, call.params)
  await requireTask(services, call, taskId)
  await registrations.check(pushNotificationConfig)
  // Looking up the name took time; what was told meanwhile is not owed.
  const task = await requireTask(services, call, taskId)
  const { config } = await registrations.set(task, pushNotificationConfig, {
    longRunning,
    settled: task.events.length,
    open: !isTerminal(task.status.state),
    isNew: false,
  })
  return { result: pushConfigOut(config) }
}

/** The config that was set last, unless one is named. */
export async function getPushConfig(services: Services, call: Call): Promise<Answer> {
  const registrations = requirePush(services)
  const { taskId, pushNotificationConfigId: id } = parseParams(pushConfigGet, call.params)
  const task = await requireTask(services, call, taskId)
  const found = id === undefined ? (await registrations.list(task))[0] : await registrations.find(task, id)
  return { result: pushConfigOut(requireConfig(found, taskId)) }
}

export async function listPushConfigs(services: Services, call: Call): Promise<Answer> {
  const registrations = requirePush(services)
  const { taskId } = parseParams(pushConfigList, call.params)
  const task = await requireTask(services, call, taskId)
  return { result: (await registrations.list(task)).map(pushConfigOut) }
}

/** What waits for it is not sent. */
export async function deletePushConfig(services: Services, call: Call): Promise<Answer> {
  const registrations = requirePush(services)
  const { taskId, pushNotificationConfigId } = parseParams(pushConfigDelete, call.params)
  const task = await requireTask(services, call, taskId)
  const removed = await registrations.remove(task, pushNotificationConfigId)
  return { result: pushConfigOut(requireConfig(removed, taskId)) }
}

/** @throws ParleyError -32005 with the push-specific name (spec/webhooks.md#capability) */
function requirePush({ registrations }: Services): Registrations {
  if (registrations !== undefined) return registrations
  throw new ParleyError('ContentTypeNotSupported', {
    message: 'Push notifications are not supported',
    data: { name: 'PushNotificationNotSupportedError' },
  })
}

/** The answer says that the config is missing, not the task (spec/methods.md#taskspushnotificationconfig). */
function requireConfig(config: PushConfig | undefined, taskId: string): PushConfig {
  if (config !== undefined) return config
  throw new ParleyError('TaskNotFound', {
    message: 'Push notification configuration not found for the task',
    data: { taskId, reason: 'push_notification_config' },
  })
}
