import { type MethodRows, methodTable, streams } from '../method-table.ts'
import { cardOut } from './card.ts'
import * as params from './params.ts'
import { taskPushConfigOut } from './push-config.ts'
import { answerOut, taskOut } from './task.ts'

/** The name, the params and the result writer of every method of A2A 0.3 (spec/a2a.md#03-methods). */
const rows: MethodRows = {
  sendMessage: {
    method: 'message/send',
    schema: params.messageSend,
    params: params.sendMessage,
    result: answerOut,
  },
  streamMessage: {
    method: 'message/stream',
    schema: params.messageSend,
    params: params.sendMessage,
    result: streams,
  },
  getTask: { method: 'tasks/get', schema: params.taskGet, params: params.getTask, result: taskOut },
  cancelTask: { method: 'tasks/cancel', schema: params.onlyTask, params: params.ofOneTask, result: taskOut },
  resubscribe: {
    method: 'tasks/resubscribe',
    schema: params.onlyTask,
    params: params.ofOneTask,
    result: streams,
  },
  setPushConfig: {
    method: 'tasks/pushNotificationConfig/set',
    schema: params.pushConfigSet,
    params: params.setPushConfig,
    result: taskPushConfigOut,
  },
  getPushConfig: {
    method: 'tasks/pushNotificationConfig/get',
    schema: params.pushConfigGet,
    params: params.getPushConfig,
    result: taskPushConfigOut,
  },
  listPushConfigs: {
    method: 'tasks/pushNotificationConfig/list',
    schema: params.onlyTask,
    params: params.ofOneTask,
    result: ({ items }) => items.map(taskPushConfigOut),
  },
  deletePushConfig: {
    method: 'tasks/pushNotificationConfig/delete',
    schema: params.pushConfigDelete,
    params: params.deletePushConfig,
    result: () => null,
  },
  getExtendedCard: {
    method: 'agent/getAuthenticatedExtendedCard',
    schema: params.noParams,
    params: () => ({}),
    result: (card) => cardOut(card),
  },
}

export const { methods, methodOf, paramsSchema, readParams, writeResult } = methodTable(rows, 'A2A 0.3')
