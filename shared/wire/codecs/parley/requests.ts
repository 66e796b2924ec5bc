import type { ClientParams } from '../codec.ts'

/** Write the params of requests for clients. Absent fields do not appear in the JSON. */
const writers: { [O in keyof ClientParams]: (params: ClientParams[O]) => object } = {
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
