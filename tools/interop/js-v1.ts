import { randomUUID } from 'node:crypto'
import {
  AgentCard,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk'
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'
import { type ClientKind, collect, fetchWith, type Given, type Operation } from './client.ts'

const frameJson = (frame: StreamResponse) => StreamResponse.toJSON(frame)

const message = ({ text = '', waits = true, id = '', contextId = '' }: Given) =>
  SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], taskId: id, contextId },
    configuration: { returnImmediately: !waits },
  })

async function call(client: Client, operation: Operation, given: Given): Promise<unknown> {
  const { id = '', configId = '', url = '', token = '' } = given
  const tenant = ''
  const config = { tenant, taskId: id, id: configId }
  switch (operation) {
    case 'card':
      return AgentCard.toJSON(await client.getAgentCard())
    case 'send': {
      const answer = await client.sendMessage(message(given))
      return 'status' in answer ? Task.toJSON(answer) : { message: answer }
    }
    case 'stream':
      return await collect(client.sendMessageStream(message(given)), frameJson)
    case 'subscribe':
      return await collect(client.resubscribeTask({ tenant, id }), frameJson)
    case 'get':
      return Task.toJSON(await client.getTask({ tenant, id }))
    case 'list': {
      const request = ListTasksRequest.fromJSON({ contextId: given.contextId })
      return ListTasksResponse.toJSON(await client.listTasks(request))
    }
    case 'cancel':
      return Task.toJSON(await client.cancelTask({ tenant, id, metadata: undefined }))
    case 'setPush': {
      const request = TaskPushNotificationConfig.fromJSON({ taskId: id, id: configId, url, token })
      return TaskPushNotificationConfig.toJSON(await client.createTaskPushNotificationConfig(request))
    }
    case 'getPush':
      return TaskPushNotificationConfig.toJSON(await client.getTaskPushNotificationConfig(config))
    case 'listPush': {
      const request = { tenant, taskId: id, pageSize: 0, pageToken: '' }
      const { configs } = await client.listTaskPushNotificationConfig(request)
      return configs.map((one) => TaskPushNotificationConfig.toJSON(one))
    }
    default:
      await client.deleteTaskPushNotificationConfig(config)
      return null
  }
}

/** `@a2a-js/sdk` 1.3. */
export const jsV1 = (binding: 'JSON-RPC' | 'REST'): ClientKind => ({
  name: `a2a-js 1.3 ${binding}`,
  dialect: '1.0',
  lacks: [],
  connect: async (base, token) => {
    const fetchImpl = fetchWith(token)
    const Transport = binding === 'REST' ? RestTransportFactory : JsonRpcTransportFactory
    const factory = new ClientFactory({
      transports: [new Transport({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    })
    const client = await factory.createFromUrl(base)
    return {
      call: (operation, given = {}) => call(client, operation, given),
      [Symbol.asyncDispose]: async () => {},
    }
  },
})
