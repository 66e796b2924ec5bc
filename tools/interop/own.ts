import { AgentClient } from '@parley/client/internal/client'
import { type ClientKind, collect, type Given, type Operation } from './client.ts'

const camel = (task: object) => ({
  ...task,
  contextId: 'context_id' in task ? task.context_id : undefined,
})

async function call(client: AgentClient, operation: Operation, given: Given): Promise<unknown> {
  const { text = '', id = '', contextId } = given
  const message = {
    parts: [{ kind: 'text' as const, text }],
    ...(id !== '' && { taskId: id }),
    ...(contextId !== undefined && { contextId }),
  }
  switch (operation) {
    case 'send': {
      const task = await client.send(message)
      return camel(given.waits === false ? task : await client.wait(task.id))
    }
    case 'stream':
      return await collect(client.stream(message), (event) => event)
    case 'get':
      return camel(await client.get(id))
    case 'list':
      return { tasks: (await client.list({ context_id: contextId })).map(camel) }
    case 'cancel':
      return camel(await client.cancel(id))
    default:
      throw new Error(`the suite does not use ${operation} of Parley's own dialect`)
  }
}

/** Parley's own client and dialect. */
export const own: ClientKind = {
  name: 'Parley',
  dialect: 'parley',
  lacks: ['card', 'subscribe', 'setPush', 'getPush', 'listPush', 'deletePush'],
  connect: async (base, token) => {
    const client = new AgentClient({ url: base, ...(token !== undefined && { token }) })
    return {
      call: (operation, given = {}) => call(client, operation, given),
      [Symbol.asyncDispose]: async () => {},
    }
  },
}
