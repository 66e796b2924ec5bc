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
    params: reader(params.sendMessageIn, params.toSendMessage),
    result: sent,
  },
  streamMessage: {
    method: 'SendStreamingMessage',
    params: reader(params.sendMessageIn, params.toSendMessage),
    result: streams,
  },
  getTask: {
    method: 'GetTask',
    params: reader(params.getTaskIn, ({ id, historyLength }) => ({ taskId: taskIdOf(id), historyLength })),
    result: taskOut,
  },
  listTasks: {
    method: 'ListTasks',
    params: reader(params.listTasksIn, (given, ids) => ({
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
    params: reader(params.taskIn, ({ id }) => ({ taskId: taskIdOf(id) })),
    result: taskOut,
  },
  resubscribe: {
    method: 'SubscribeToTask',
    params: reader(params.taskIn, ({ id }) => ({ taskId: taskIdOf(id), requireOpen: true })),
    result: streams,
  },
  setPushConfig: {
    method: 'CreateTaskPushNotificationConfig',
    params: reader(params.createPushConfigIn, ({ taskId, ...config }, ids) => ({
      taskId: taskIdOf(taskId),
      // The webhook survives a restart of the server.
      longRunning: true,
      pushNotificationConfig: toPushConfig(config, ids),
    })),
    result: pushConfigOut,
  },
  getPushConfig: {
    method: 'GetTaskPushNotificationConfig',
    params: reader(params.pushConfigOfTask, ({ taskId, id }, ids) => ({
      taskId: taskIdOf(taskId),
      pushNotificationConfigId: ids(id).id,
    })),
    result: pushConfigOut,
  },
  listPushConfigs: {
    method: 'ListTaskPushNotificationConfigs',
    params: reader(params.listPushConfigsIn, ({ taskId, pageSize, pageToken }) => ({
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
    params: reader(params.pushConfigOfTask, ({ taskId, id }, ids) => ({
      taskId: taskIdOf(taskId),
      pushNotificationConfigId: ids(id).id,
      idempotent: true,
    })),
    result: () => ({}),
  },
  getExtendedCard: {
    method: 'GetExtendedAgentCard',
    params: reader(params.noParams, () => ({})),
    result: cardOut,
  },
}

function reader<Schema extends z.ZodType, Params>(
  schema: Schema,
  convert: (parsed: z.output<Schema>, ids: Ids) => Params,
) {
  return (given: Record<string, unknown>, ids: Ids): Params => convert(parseParams(schema, given), ids)
}

function sent(task: Task) {
  const message = answerMessage(task)
  return message === undefined ? { task: taskOut(task) } : { message: messageOut(message) }
}

export const { methods, methodOf, readParams, writeResult } = methodTable(rows, 'A2A')
