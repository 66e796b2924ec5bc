import type { z } from 'zod'
import type { Ids } from '../../model/ids.ts'
import type { Task } from '../../model/task.ts'
import { answerMessage } from '../a2a-task.ts'
import { type MethodRows, methodTable, streams } from '../method-table.ts'
import { parseParams } from '../parley/params.ts'
import { cardOut } from './card.ts'
import { taskIdOf } from './message.ts'
import * as params from './params.ts'
import { pushConfigOut, toPushConfig } from './push-config.ts'
import { statesShownAs } from './states.ts'
import { filled, messageOut, taskOut } from './task.ts'

const rows: MethodRows = {
  sendMessage: {
    method: 'SendMessage',
    ...reading(params.sendMessageIn, params.toSendMessage),
    result: sent,
  },
  streamMessage: {
    method: 'SendStreamingMessage',
    ...reading(params.sendMessageIn, params.toSendMessage),
    result: streams,
  },
  getTask: {
    method: 'GetTask',
    ...reading(params.getTaskIn, ({ id, historyLength }) => ({ taskId: taskIdOf(id), historyLength })),
    result: taskOut,
  },
  listTasks: {
    method: 'ListTasks',
    ...reading(params.listTasksIn, (given, ids) => ({
      limit: given.pageSize,
      cursor: given.pageToken,
      contextId: given.contextId === undefined ? undefined : ids(given.contextId).id,
      states: given.status && statesShownAs(given.status),
      historyLength: given.historyLength,
      includeArtifacts: given.includeArtifacts,
      statusSince: given.statusTimestampAfter,
      order: 'status',
      count: true,
    })),
    result: ({ items, nextCursor, limit, total }) => ({
      tasks: items.map(taskOut),
      nextPageToken: nextCursor ?? '',
      pageSize: limit ?? items.length,
      totalSize: total ?? items.length,
    }),
  },
  cancelTask: {
    method: 'CancelTask',
    ...reading(params.taskIn, ({ id }) => ({ taskId: taskIdOf(id) })),
    result: taskOut,
  },
  resubscribe: {
    method: 'SubscribeToTask',
    ...reading(params.taskIn, ({ id }) => ({ taskId: taskIdOf(id), requireOpen: true })),
    result: streams,
  },
  setPushConfig: {
    method: 'CreateTaskPushNotificationConfig',
    ...reading(params.createPushConfigIn, ({ taskId, ...config }, ids) => ({
      taskId: taskIdOf(taskId),
      // The webhook survives a restart of the server.
      longRunning: true,
      pushNotificationConfig: toPushConfig(config, ids),
    })),
    result: pushConfigOut,
  },
  getPushConfig: {
    method: 'GetTaskPushNotificationConfig',
    ...reading(params.pushConfigOfTask, ({ taskId, id }, ids) => ({
      taskId: taskIdOf(taskId),
      pushNotificationConfigId: ids(id).id,
    })),
    result: pushConfigOut,
  },
  listPushConfigs: {
    method: 'ListTaskPushNotificationConfigs',
    ...reading(params.listPushConfigsIn, ({ taskId, pageSize, pageToken }) => ({
      taskId: taskIdOf(taskId),
      ...(pageSize !== 0 && { limit: pageSize }),
      cursor: pageToken,
    })),
    result: ({ items, nextCursor }) => ({
      configs: filled(items)?.map(pushConfigOut),
      nextPageToken: nextCursor,
    }),
  },
  deletePushConfig: {
    method: 'DeleteTaskPushNotificationConfig',
    ...reading(params.pushConfigOfTask, ({ taskId, id }, ids) => ({
      taskId: taskIdOf(taskId),
      pushNotificationConfigId: ids(id).id,
      idempotent: true,
    })),
    result: () => ({}),
  },
  getExtendedCard: {
    method: 'GetExtendedAgentCard',
    ...reading(params.noParams, () => ({})),
    result: cardOut,
  },
}

function reading<Schema extends z.ZodType, Params>(
  schema: Schema,
  convert: (parsed: z.output<Schema>, ids: Ids) => Params,
) {
  const read = (given: Record<string, unknown>, ids: Ids): Params => convert(parseParams(schema, given), ids)
  return { schema, params: read }
}

function sent(task: Task) {
  const message = answerMessage(task)
  return message === undefined ? { task: taskOut(task) } : { message: messageOut(message) }
}

export const { methods, methodOf, paramsSchema, readParams, writeResult } = methodTable(rows, 'A2A')
