import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { SendMessage } from '../../model/call.ts'
import type { Ids } from '../../model/ids.ts'
import type { Calls } from '../../model/operation.ts'
import { parseParams } from '../parley/params.ts'
import { camelObject } from '../parley/spelling.ts'
import { clientId, incomingMessage, messageIn, optionalId, taskIdOf } from './message.ts'
import { pushConfigIn, pushNotificationConfig } from './push-config.ts'

type Given = Record<string, unknown>

const historyLength = z.int().min(0).optional()

export const messageSend = camelObject({
  message: messageIn,
  configuration: camelObject({
    acceptedOutputModes: z.array(z.string().max(256)).max(100).optional(),
    blocking: z.boolean().optional(),
    historyLength,
    pushNotificationConfig: pushNotificationConfig.optional(),
    longRunning: z.boolean().optional(),
    // The maximum delay that a timer supports.
    deadlineMs: z.int().min(1).max(2_147_483_647).optional(),
  }).optional(),
})

/**
 * Without `blocking`, the call waits, as with the servers of the SDKs.
 * @throws ParleyError InvalidParams, TaskNotFound
 */
export function sendMessage(given: Given, ids: Ids): SendMessage {
  const { message: read, configuration = {} } = parseParams(messageSend, given)
  const message = incomingMessage(read, ids)
  const { blocking = true, pushNotificationConfig: webhook, longRunning, ...rest } = configuration
  return {
    message,
    continues: true,
    pausesUnpaid: true,
    configuration: {
      ...rest,
      wait: blocking,
      // The webhook of a client that did not decide survives a restart of the server.
      longRunning: longRunning ?? (webhook === undefined ? undefined : true),
      pushNotificationConfig: webhook && pushConfigIn(webhook, message.taskId, ids),
    },
  }
}

export const noParams = camelObject({})

/** The specification names the task `id`, except in `tasks/pushNotificationConfig/set`. Both names are accepted. */
const anyOfTaskId = { id: ['taskId', 'task_id'] }
const ofTask = { id: clientId }

export const taskGet = camelObject({ ...ofTask, historyLength }, anyOfTaskId)

export function getTask(given: Given): Calls['getTask']['params'] {
  const { id, ...rest } = parseParams(taskGet, given)
  return { taskId: taskIdOf(id), ...rest }
}

export const onlyTask = camelObject(ofTask, anyOfTaskId)

export function ofOneTask(given: Given): { taskId: string } {
  return { taskId: readTaskId(given) }
}

export const pushConfigSet = camelObject({ taskId: clientId, pushNotificationConfig }, { taskId: ['id'] })

export function setPushConfig(given: Given, ids: Ids): Calls['setPushConfig']['params'] {
  const read = parseParams(pushConfigSet, given)
  const taskId = taskIdOf(read.taskId)
  const config = pushConfigIn(read.pushNotificationConfig, taskId, ids)
  return { taskId, longRunning: true, pushNotificationConfig: config }
}

export const pushConfigGet = camelObject({ ...ofTask, pushNotificationConfigId: optionalId }, anyOfTaskId)

export function getPushConfig(given: Given, ids: Ids): Calls['getPushConfig']['params'] {
  const { id, pushNotificationConfigId: config } = parseParams(pushConfigGet, given)
  return { taskId: taskIdOf(id), pushNotificationConfigId: config === undefined ? undefined : ids(config).id }
}

export const pushConfigDelete = camelObject({ ...ofTask, pushNotificationConfigId: clientId }, anyOfTaskId)

/** The SDKs' servers report success for a missing webhook. */
export function deletePushConfig(given: Given, ids: Ids): Calls['deletePushConfig']['params'] {
  const { id, pushNotificationConfigId: config } = parseParams(pushConfigDelete, given)
  return { taskId: taskIdOf(id), pushNotificationConfigId: ids(config).id, idempotent: true }
}

const webhookTask = camelObject({ taskId: clientId }, { taskId: ['id'] })
const isWebhook = (given: Given) =>
  isObject(given['pushNotificationConfig'] ?? given['push_notification_config'])

/**
 * In the params of a new webhook, `taskId` takes precedence, and in others, `id`.
 * @throws ParleyError InvalidParams, TaskNotFound
 */
export function readTaskId(given: Given): string {
  return taskIdOf(isWebhook(given) ? parseParams(webhookTask, given).taskId : parseParams(onlyTask, given).id)
}

/** Params of this dialect name no agent; the path does. */
export function readTenant(): undefined {
  return undefined
}

/** In the configuration, as in Parley's own dialect, or in metadata, because clients of the SDKs send no other fields. */
export function readQuery(given: Given): unknown {
  const { configuration, metadata, message } = given
  const ofMessage = isObject(message) ? message['metadata'] : undefined
  for (const holder of [configuration, metadata, ofMessage])
    if (isObject(holder) && holder['negotiation'] !== undefined) return holder['negotiation']
  return undefined
}
