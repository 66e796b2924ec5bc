import { randomUUID } from 'node:crypto'
import type { MessageSendParams } from 'a2a-js-0.3'
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from 'a2a-js-0.3/client'
import { type ClientKind, collect, fetchWith, type Given, type Operation } from './client.ts'

const message = ({ text = '', waits = true, id, contextId }: Given): MessageSendParams => ({
  message: {
    kind: 'message',
    messageId: randomUUID(),
    role: 'user',
    parts: [{ kind: 'text', text }],
    ...(id !== undefined && { taskId: id }),
    ...(contextId !== undefined && { contextId }),
  },
  configuration: { blocking: waits },
})

async function call(client: Client, operation: Operation, given: Given): Promise<unknown> {
  const { id = '', configId = '', url = '', token = '' } = given
  const same = (item: unknown) => item
  switch (operation) {
    case 'card':
      return await client.getAgentCard()
    case 'send':
      return await client.sendMessage(message(given))
    case 'stream':
      return await collect(client.sendMessageStream(message(given)), same)
    case 'subscribe':
      return await collect(client.resubscribeTask({ id }), same)
    case 'get':
      return await client.getTask({ id })
    case 'list':
      throw new Error('A2A 0.3 has no list of tasks')
    case 'cancel':
      return await client.cancelTask({ id })
    case 'setPush': {
      const pushNotificationConfig = { id: configId, url, token }
      return await client.setTaskPushNotificationConfig({ taskId: id, pushNotificationConfig })
    }
    case 'getPush': {
      // The type of this method in 0.3.14 lacks the ID, which is sent.
      const params = { id, pushNotificationConfigId: configId }
      return await client.getTaskPushNotificationConfig(params)
    }
    case 'listPush':
      return await client.listTaskPushNotificationConfig({ id })
    default:
      await client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId: configId })
      return null
  }
}

/** `@a2a-js/sdk` 0.3.14. */
export const jsV03: ClientKind = {
  name: 'a2a-js 0.3.14',
  dialect: '0.3',
  lacks: ['list'],
  connect: async (base, token) => {
    const fetchImpl = fetchWith(token)
    const factory = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    })
    const client = await factory.createFromUrl(base)
    return {
      call: (operation, given = {}) => call(client, operation, given),
      [Symbol.asyncDispose]: async () => {},
    }
  },
}
