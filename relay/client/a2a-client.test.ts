import { createServer } from 'node:http'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { type ForeignAgent, type ForeignScript, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import type { SendMessage } from '@parley/wire/model/call'
import { afterEach, describe, expect, test } from 'vitest'
import { A2aClient, type A2aClientOptions } from './a2a-client.ts'

const disposables: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of disposables.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

const hello: SendMessage = {
  message: { role: 'user', messageId: 'm-1', parts: [{ kind: 'text', text: 'hello' }], metadata: {} },
  configuration: { wait: false },
}
const signal = AbortSignal.timeout(60_000)
const timing = { repeatDelayMs: 5, idleMs: 500, requestTimeoutMs: 500, sendTimeoutMs: 500 }

const versions = {
  '1.0': {
    dialect: dialectNamed('a2a-v1'),
    methods: {
      send: 'SendMessage',
      stream: 'SendStreamingMessage',
      get: 'GetTask',
      follow: 'SubscribeToTask',
    },
    working: { id: 't-1', contextId: 'c-1', status: { state: 'TASK_STATE_WORKING' } },
    frames: [
      { task: { id: 't-1', contextId: 'c-1', status: { state: 'TASK_STATE_SUBMITTED' } } },
      {
        artifactUpdate: {
          taskId: 't-1',
          contextId: 'c-1',
          artifact: { artifactId: 'a', parts: [{ text: 'Hi' }] },
          append: false,
          lastChunk: true,
        },
      },
      { statusUpdate: { taskId: 't-1', contextId: 'c-1', status: { state: 'TASK_STATE_COMPLETED' } } },
    ],
    wrap: (task: object) => ({ task }),
  },
  '0.3': {
    dialect: dialectNamed('a2a-v0.3'),
    methods: {
      send: 'message/send',
      stream: 'message/stream',
      get: 'tasks/get',
      follow: 'tasks/resubscribe',
    },
    working: { kind: 'task', id: 't-1', contextId: 'c-1', status: { state: 'working' } },
    frames: [
      { kind: 'task', id: 't-1', contextId: 'c-1', status: { state: 'submitted' } },
      {
        kind: 'artifact-update',
        taskId: 't-1',
        contextId: 'c-1',
        artifact: { artifactId: 'a', parts: [{ kind: 'text', text: 'Hi' }] },
        append: false,
        lastChunk: true,
      },
      {
        kind: 'status-update',
        taskId: 't-1',
        contextId: 'c-1',
        status: { state: 'completed' },
        final: true,
      },
    ],
    wrap: (task: object) => task,
  },
}

describe.each(Object.entries(versions))('A2A %s', (_name, at) => {
  test('a message is sent with its IDs and headers, and the task of the answer is read', async () => {
    const agent = await foreign((_request, reply) => reply.result(at.wrap(at.working)))
    const frames = await all(client(agent).send(hello, signal))
    expect(frames).toMatchObject([{ kind: 'task', task: { id: 't-1', status: { state: 'working' } } }])
    const [request] = agent.requests
    expect(request?.method).toBe(at.methods.send)
    expect(request?.headers['a2a-version']).toBe(at.dialect.version)
    expect(request?.params['message']).toMatchObject({ messageId: 'm-1' })
  })

  test('a stream yields each frame', async () => {
    const agent = await foreign((_request, reply) => {
      for (const frame of at.frames) reply.frame(frame)
      reply.end()
    })
    const frames = await all(client(agent, { streaming: true }).send(hello, signal))
    expect(frames.map(({ kind }) => kind)).toEqual(['task', 'artifact-update', 'status-update'])
    expect(agent.requests[0]?.method).toBe(at.methods.stream)
    expect(agent.requests[0]?.headers.accept).toContain('text/event-stream')
  })

  test('a streaming call may be answered without a stream', async () => {
    const agent = await foreign((_request, reply) => reply.result(at.wrap(at.working)))
    const frames = await all(client(agent, { streaming: true }).send(hello, signal))
    expect(frames).toMatchObject([{ kind: 'task' }])
  })

  test('tasks are read, canceled and followed', async () => {
    const agent = await foreign((request, reply) => {
      if (request.method === at.methods.follow) reply.error(-32_004, 'no streams')
      else reply.result(at.working)
    })
    const to = client(agent)
    expect(await to.get('t-1', signal)).toMatchObject({ id: 't-1' })
    expect(await to.cancel('t-1', signal)).toMatchObject({ id: 't-1' })
    await expect(all(to.follow('t-1', signal))).rejects.toMatchObject({
      name: 'AgentRefused',
      error: 'UnsupportedOperation',
      message: 'no streams',
    })
    expect(agent.requests[0]?.method).toBe(at.methods.get)
    expect(agent.requests[0]?.params).toMatchObject({ id: 't-1' })
  })

  test('the answer about another task is refused', async () => {
    const agent = await foreign((_request, reply) => reply.result({ ...at.working, id: 't-2' }))
    await expect(client(agent).get('t-1', signal)).rejects.toMatchObject({
      name: 'InvalidAgentAnswer',
      message: 'The agent answered with another task',
    })
  })

  function client(agent: ForeignAgent, options: Partial<A2aClientOptions> = {}) {
    return clientOf(agent, { dialect: at.dialect, ...options })
  }
})

const { dialect, working } = versions['1.0']
const task = { task: working }

describe('repetitions', () => {
  test('a message is not sent again without a stream if its stream has begun', async () => {
    const error = { code: -32_004, message: 'Not supported' }
    const agent = await foreign(({ method }, reply) => {
      if (method === 'SendMessage') return reply.result(task)
      reply.frame(task)
      reply.response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: null, error })}\n\n`)
      reply.end()
    })
    await expect(all(clientOf(agent, { streaming: true }).send(hello, signal))).rejects.toThrow(
      'Not supported',
    )
    expect(agent.requests.map(({ method }) => method)).toEqual(['SendStreamingMessage'])
  })

  test('a message is repeated if the agent refused it for overload, and not if it may have been processed', async () => {
    let status = 503
    const agent = await foreign((_request, reply) => {
      if (agent.requests.length === 1) reply.response.writeHead(status).end()
      else reply.result(task)
    })
    expect(await all(clientOf(agent).send(hello, signal))).toHaveLength(1)
    expect(agent.requests).toHaveLength(2)
    agent.requests.length = 0
    status = 502
    await expect(all(clientOf(agent).send(hello, signal))).rejects.toMatchObject({
      name: 'AgentUnreachable',
      received: true,
    })
    expect(agent.requests).toHaveLength(1)
  })

  test('a message is not repeated after a lost connection; a read is', async () => {
    const agent = await foreign((request, reply) => {
      if (request.method === 'GetTask' && agent.requests.length > 2) reply.result(working)
      else reply.response.destroy()
    })
    await expect(all(clientOf(agent).send(hello, signal))).rejects.toMatchObject({
      name: 'AgentUnreachable',
      received: true,
    })
    expect(agent.requests).toHaveLength(1)
    expect(await clientOf(agent).get('t-1', signal)).toMatchObject({ id: 't-1' })
    expect(agent.requests.length).toBe(3)
  })

  test('an agent that does not listen has not received the message', async () => {
    const agent = await foreign(() => {})
    const { url } = agent
    await agent[Symbol.asyncDispose]()
    disposables.length = 0
    await expect(all(clientOf({ url }).send(hello, signal))).rejects.toMatchObject({ received: false })
  })

  test('an unresponsive agent is given up after the time limit', async () => {
    const agent = await foreign(() => {})
    await expect(all(clientOf(agent).send(hello, signal))).rejects.toMatchObject({
      name: 'AgentUnreachable',
      received: true,
      message: 'The agent did not answer in time',
    })
  })

  test('an aborted call throws the reason of the signal', async () => {
    const agent = await foreign(() => {})
    const abort = new AbortController()
    const call = all(clientOf(agent).send(hello, abort.signal))
    await expect.poll(() => agent.requests.length).toBe(1)
    abort.abort(new Error('canceled'))
    await expect(call).rejects.toThrow('canceled')
  })
})

describe('hostile answers', () => {
  test.each<[string, ForeignScript, string]>([
    [
      'the ID of another request',
      (_, { response }) => void response.end(JSON.stringify({ jsonrpc: '2.0', id: 'x', result: task })),
      'The agent answered with the ID of another request',
    ],
    [
      'a redirect',
      (_, { response }) => void response.writeHead(307, { location: 'http://example.com/' }).end(),
      'The agent redirects requests (HTTP 307), which is refused',
    ],
    [
      'a page of a proxy',
      (_, { response }) => void response.writeHead(404).end('<html>'),
      'The agent answered HTTP 404 without a JSON-RPC result',
    ],
    [
      'text',
      (_, { response }) => void response.end('hello'),
      "The agent's answer cannot be read: Body is not valid JSON",
    ],
    [
      'a prototype',
      (request, { response }) =>
        void response.end(`{"jsonrpc":"2.0","id":"${String(request.id)}","result":{"__proto__":{}}}`),
      "The agent's answer cannot be read: Key __proto__ is not allowed",
    ],
    ['no task', (_, reply) => reply.result({}), 'The agent answered with neither a valid task nor a message'],
    [
      'a state that does not exist',
      (_, reply) => reply.result({ task: { ...working, status: { state: 'TASK_STATE_DREAMING' } } }),
      'The agent answered with neither a valid task nor a message',
    ],
    [
      'a large answer',
      (_, reply) => reply.result({ task: { ...working, metadata: { text: 'x'.repeat(20_000) } } }),
      "The agent's answer is too large",
    ],
    [
      'a compressed answer',
      (_, { response }) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
      'The response is compressed, although no compression was requested',
    ],
    [
      'a frame without end',
      (_, { response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(`data: ${'x'.repeat(5000)}`)
      },
      "A frame of the agent's stream is larger than 2000 characters",
    ],
    [
      'frames without end',
      (_, reply) => {
        for (let i = 0; i < 50; i += 1) reply.frame(task)
      },
      "The agent's stream has more than 20 frames",
    ],
    [
      'heartbeats without end',
      (_, { response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(': heartbeat\n'.repeat(2000))
      },
      "The agent's stream is larger than 15000 bytes",
    ],
    [
      'a frame that is not JSON',
      (_, { response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: hello\n\n')
      },
      "The agent's answer cannot be read: Body is not valid JSON",
    ],
    [
      'an unknown frame',
      (_, reply) => reply.frame({ dream: {} }),
      "A frame of the agent's stream is malformed",
    ],
    [
      'a frame of another request',
      (_, { response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: {"jsonrpc":"2.0","id":"x","result":{}}\n\n')
      },
      'The agent answered with the ID of another request',
    ],
  ])('%s', async (_what, script, message) => {
    const agent = await foreign(script)
    const limits = { answerMaxBytes: 10_000, frameMaxChars: 2000, framesMax: 20, streamMaxBytes: 15_000 }
    const call = all(clientOf(agent, { limits: { ...timing, ...limits } }).send(hello, signal))
    await expect(call).rejects.toMatchObject({ name: 'InvalidAgentAnswer', message })
    expect(agent.requests).toHaveLength(1)
  })

  test('a silent stream is given up', async () => {
    const agent = await foreign((_request, reply) => reply.frame(task))
    await expect(all(clientOf(agent).send(hello, signal))).rejects.toMatchObject({ name: 'AgentUnreachable' })
  })

  test('a private address without an exception is refused', async () => {
    const agent = await foreign(() => {})
    const call = all(clientOf(agent, { allowed: parseAllowedHosts('') }).send(hello, signal))
    await expect(call).rejects.toMatchObject({ name: 'InvalidAgentAnswer' })
    expect(agent.requests).toEqual([])
  })
})

describe('credentials', () => {
  test.each([
    [{ kind: 'bearer', token: 'T' } as const, { authorization: 'Bearer T' }, '/'],
    [{ kind: 'apiKey', in: 'header', name: 'X-API-Key', value: 'k' } as const, { 'x-api-key': 'k' }, '/'],
    [{ kind: 'apiKey', in: 'cookie', name: 'key', value: 'k' } as const, { cookie: 'key=k' }, '/'],
    [{ kind: 'apiKey', in: 'query', name: 'key', value: 'k&' } as const, {}, '/?key=k%26'],
  ])('%j', async (credential, headers, url) => {
    const agent = await foreign((_request, reply) => reply.result(task))
    await all(clientOf(agent, { credential }).send(hello, signal))
    expect(agent.requests[0]?.headers).toMatchObject(headers)
    expect(agent.requests[0]?.url).toBe(url)
  })

  test('a refused credential is named without its value', async () => {
    const agent = await foreign((_request, { response }) => void response.writeHead(401).end())
    const credential = { kind: 'bearer', token: 'SECRET' } as const
    await expect(all(clientOf(agent, { credential }).send(hello, signal))).rejects.toMatchObject({
      name: 'AgentRefused',
      error: 'AuthenticationRequired',
      message: 'The agent does not accept the credential of this gateway',
    })
    expect(agent.requests).toHaveLength(1)
  })

  test('without a credential, the error states how to set one', async () => {
    const agent = await foreign((_request, { response }) => void response.writeHead(401).end())
    const message = expect.stringContaining('The operator sets it with npx parley admit <agent> --credential')
    const refused = { name: 'AgentRefused', error: 'AuthenticationRequired', message }
    await expect(all(clientOf(agent).send(hello, signal))).rejects.toMatchObject(refused)
  })

  test('an OAuth token is cached, shared, and renewed after a 401', async () => {
    let issued = 0
    const forms: string[] = []
    const oauth = createServer((request, response) => {
      request.setEncoding('utf8').on('data', (body) => {
        forms.push(`${request.headers.authorization} ${String(body)}`)
        issued += 1
        response.end(JSON.stringify({ access_token: `token-${issued}`, expires_in: 60 }))
      })
    })
    await new Promise<void>((listening) => oauth.listen(0, '127.0.0.1', listening))
    disposables.push({ [Symbol.asyncDispose]: async () => void oauth.close() })
    const address = oauth.address()
    const port = typeof address === 'object' ? address?.port : 0
    const agent = await foreign((request, reply) => {
      if (request.headers.authorization === 'Bearer token-1' && agent.requests.length > 2)
        reply.response.writeHead(401).end()
      else reply.result(task)
    })
    const to = clientOf(agent, {
      credential: {
        kind: 'oauth2',
        tokenUrl: `http://127.0.0.1:${port}/token`,
        clientId: 'me',
        clientSecret: 's:1',
        scope: 'a b',
      },
    })
    await Promise.all([all(to.send(hello, signal)), all(to.send(hello, signal))])
    expect(forms).toEqual([`Basic ${btoa('me:s%3A1')} grant_type=client_credentials&scope=a+b`])
    await all(to.send(hello, signal))
    expect(agent.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer token-1',
      'Bearer token-1',
      'Bearer token-1',
      'Bearer token-2',
    ])
  })
})

async function foreign(script: ForeignScript): Promise<ForeignAgent> {
  const agent = await startForeignAgent(script)
  disposables.push(agent)
  return agent
}

function clientOf({ url }: { url: string }, options: Partial<A2aClientOptions> = {}): A2aClient {
  const client = new A2aClient({
    url: `${url}/`,
    dialect,
    streaming: false,
    allowed: parseAllowedHosts('127.0.0.1'),
    limits: timing,
    ...options,
  })
  disposables.push(client)
  return client
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}
