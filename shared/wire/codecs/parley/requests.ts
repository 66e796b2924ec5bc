import type { SendMessage } from '../../model/call.ts'
import type { ClientParams } from '../codec.ts'
import { partOut } from './task.ts'

/** Write the params of requests for clients. Absent fields do not appear in the JSON. */
const writers: { [O in keyof ClientParams]: (params: ClientParams[O]) => object } = {
  sendMessage: sendOut,
  streamMessage: sendOut,
  getTask: ({ taskId, historyLength }) => ({ task_id: taskId, history_length: historyLength }),
  listTasks: ({ contextId, limit, historyLength }) => ({
    context_id: contextId,
    limit,
    history_length: historyLength,
  }),
  cancelTask: ({ taskId }) => ({ task_id: taskId }),
  listTaskEvents: ({ taskId, afterSequence, limit }) => ({
    id: taskId,
    after_sequence: afterSequence,
    limit,
  }),
  resubscribe: ({ taskId, afterSequence }) => ({ task_id: taskId, after_sequence: afterSequence }),
  setPushConfig: ({ taskId, pushNotificationConfig, longRunning }) => ({
    id: taskId,
    push_notification_config: pushNotificationConfig,
    long_running: longRunning,
  }),
  getPushConfig: ({ taskId }) => ({ task_id: taskId }),
  listPushConfigs: ({ taskId }) => ({ id: taskId }),
  deletePushConfig: ({ taskId, pushNotificationConfigId }) => ({
    id: taskId,
    push_notification_config_id: pushNotificationConfigId,
  }),
}

export function writeParams<O extends keyof ClientParams>(operation: O, params: ClientParams[O]): object {
  return writers[operation](params)
}

function sendOut({ message, configuration }: SendMessage) {
  return {
    message: {
      role: message.role,
      parts: message.parts.map(partOut),
      kind: 'message',
      message_id: message.messageId,
      context_id: message.contextId,
      task_id: message.taskId,
      reference_task_ids: message.referenceTaskIds,
      metadata: message.metadata,
    },
    configuration: configuration && {
      acceptedOutputModes: configuration.acceptedOutputModes,
      long_running: configuration.longRunning,
      push_notification_config: configuration.pushNotificationConfig && {
        id: configuration.pushNotificationConfig.id,
        url: configuration.pushNotificationConfig.url,
        token: configuration.pushNotificationConfig.token,
        authentication: configuration.pushNotificationConfig.authentication,
      },
      deadline_ms: configuration.deadlineMs,
      wait_ms: configuration.waitMs,
    },
  }
}
