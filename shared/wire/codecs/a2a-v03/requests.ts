import { ParleyError } from '../../errors.ts'
import type { SendMessage } from '../../model/call.ts'
import type { ClientParams } from '../codec.ts'
import { pushConfigOut } from './push-config.ts'
import { messageOut } from './task.ts'

/** Write the params of requests for clients. Absent fields do not appear in the JSON. */
const writers: { [O in keyof ClientParams]: (params: ClientParams[O]) => object } = {
  sendMessage: sendOut,
  streamMessage: sendOut,
  getTask: ({ taskId, historyLength }) => ({ id: taskId, historyLength }),
  listTasks: unsupported,
  cancelTask: ({ taskId }) => ({ id: taskId }),
  listTaskEvents: unsupported,
  resubscribe: ({ taskId }) => ({ id: taskId }),
  setPushConfig: ({ taskId, pushNotificationConfig: config }) => ({
    taskId,
    pushNotificationConfig: config && pushConfigOut(config),
  }),
  getPushConfig: ({ taskId, pushNotificationConfigId }) => ({ id: taskId, pushNotificationConfigId }),
  listPushConfigs: ({ taskId }) => ({ id: taskId }),
  deletePushConfig: ({ taskId, pushNotificationConfigId }) => ({ id: taskId, pushNotificationConfigId }),
}

/** @throws ParleyError UnsupportedOperation if A2A 0.3 has no method for the operation */
export function writeParams<O extends keyof ClientParams>(operation: O, params: ClientParams[O]): object {
  return writers[operation](params)
}

function unsupported(): never {
  throw new ParleyError('UnsupportedOperation', { message: 'A2A 0.3 has no lists of tasks or events' })
}

function sendOut({ message, configuration = {} }: SendMessage) {
  const { acceptedOutputModes = [], wait, historyLength, pushNotificationConfig } = configuration
  return {
    message: messageOut(message),
    configuration: {
      // Servers of version 0.2 require this field.
      acceptedOutputModes,
      blocking: wait,
      historyLength,
      pushNotificationConfig: pushNotificationConfig && pushConfigOut(pushNotificationConfig),
    },
  }
}
