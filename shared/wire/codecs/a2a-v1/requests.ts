import { ParleyError } from '../../errors.ts'
import type { SendMessage } from '../../model/call.ts'
import type { TaskState } from '../../model/task.ts'
import type { ClientParams } from '../codec.ts'
import { methodOf } from './methods.ts'
import { timeOut } from './proto-json.ts'
import { configOut } from './push-config.ts'
import { stateOut } from './states.ts'
import { filled, messageOut } from './task.ts'

/** Write the params of requests for clients. Absent fields do not appear in the JSON. */
const writers: { [O in keyof ClientParams]: (params: ClientParams[O]) => object } = {
  sendMessage: sendOut,
  streamMessage: sendOut,
  getTask: ({ taskId, historyLength }) => ({ id: taskId, historyLength }),
  listTasks: ({ contextId, limit, cursor, historyLength, states, statusSince, includeArtifacts }) => ({
    contextId,
    status: states && statusOf(states),
    pageSize: limit,
    pageToken: cursor,
    historyLength,
    statusTimestampAfter: statusSince && timeOut(statusSince),
    includeArtifacts,
  }),
  cancelTask: ({ taskId }) => ({ id: taskId }),
  listTaskEvents: () => methodOf('listTaskEvents') && {},
  resubscribe: ({ taskId }) => ({ id: taskId }),
  setPushConfig: ({ taskId, pushNotificationConfig: config }) => ({
    taskId,
    ...(config && configOut(config)),
  }),
  getPushConfig: ({ taskId, pushNotificationConfigId: id }) => ({ taskId, id }),
  listPushConfigs: ({ taskId, limit, cursor }) => ({ taskId, pageSize: limit, pageToken: cursor }),
  deletePushConfig: ({ taskId, pushNotificationConfigId: id }) => ({ taskId, id }),
}

/** @throws ParleyError UnsupportedOperation */
export function writeParams<O extends keyof ClientParams>(operation: O, params: ClientParams[O]): object {
  return writers[operation](params)
}

/** @throws ParleyError UnsupportedOperation for states that the protocol does not show as the same one */
function statusOf(states: readonly TaskState[]): string {
  const [status, ...others] = new Set(states.map(stateOut))
  if (status !== undefined && others.length === 0) return status
  throw new ParleyError('UnsupportedOperation', {
    message: 'A2A lists the tasks of one state or of all states',
  })
}

function sendOut({ message, configuration }: SendMessage) {
  const config = configuration?.pushNotificationConfig
  return {
    message: messageOut(message),
    configuration: configuration && {
      acceptedOutputModes: filled(configuration.acceptedOutputModes),
      taskPushNotificationConfig: config && configOut(config),
      historyLength: configuration.historyLength,
      returnImmediately: configuration.wait === undefined ? undefined : !configuration.wait,
    },
  }
}
