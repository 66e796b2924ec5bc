import { createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { chunk, relayed, type Script, status, statusOf, taskOf } from './relayed.cases.ts'

const disposables: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of disposables.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

const bomb = gzipSync(Buffer.alloc(20_000_000))
const limits = {
  answerMaxBytes: 2_000_000,
  frameMaxChars: 2_000_000,
  streamMaxBytes: 4_000_000,
  framesMax: 5000,
  sendTimeoutMs: 1000,
  requestTimeoutMs: 500,
  idleMs: 500,
}

const endOf = async (script: Script, options: { streaming?: boolean; deadlineMs?: number } = {}) => {
  const { caller, foreign } = await relayed(script, { limits, ...options })
  const { status: end, artifacts } = await caller.sendAndWait('hello')
  const [part] = end.message?.parts ?? []
  return { state: end.state, reason: part?.kind === 'text' ? part.text : '', artifacts, foreign }
}

describe('a card that claims streaming', () => {
  test.each<[string, (...of: Parameters<Script>) => void]>([
    ['HTTP 404', (_, { response }) => void response.writeHead(404).end('<html>')],
    ['HTTP 405', (_, { response }) => void response.writeHead(405).end()],
    ['-32004', (_, reply) => reply.error(-32_004, 'Streaming is not supported')],
    ['-32601', (_, reply) => reply.error(-32_601, 'Method not found')],
  ])('is followed by a call without a stream if the agent answers %s', async (_answer, refuse) => {
    const { state, foreign } = await endOf(
      (request, reply) => {
        if (request.method.includes('Stream')) refuse(request, reply)
        else reply.result({ task: taskOf('COMPLETED', {}, 'Done') })
      },
      { streaming: true },
    )
    expect(state).toBe('completed')
    expect(foreign.requests.map(({ method }) => method)).toEqual(['SendStreamingMessage', 'SendMessage'])
  })

  test('does not lead to endless attempts if no method works', async () => {
    const { state, reason, foreign } = await endOf((_, reply) => reply.error(-32_601, 'Method not found'), {
      streaming: true,
    })
    expect({ state, reason }).toEqual({
      state: 'failed',
      reason: 'The agent refused the message: Method not found',
    })
    expect(foreign.requests).toHaveLength(2)
  })
})

const bytes = (text: string, headers: Record<string, string> = {}): Script => {
  return (_request, { response }) =>
    void response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(text)
}

describe('an answer', () => {
  test.each<[string, Script, string]>([
    [
      'that is a page of HTML',
      bytes('<html></html>', { 'content-type': 'text/html' }),
      'Body is not valid JSON',
    ],
    [
      'that is a gzip bomb',
      (_, { response }) =>
        void response
          .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
          .end(bomb),
      'The response is compressed',
    ],
    ['without an end', endless('application/json'), "The agent's answer is too large"],
    ['that is nested 100,000 times', bytes('['.repeat(100_000)), "The agent's answer cannot be read"],
    [
      'with 10,000 artifacts',
      (_, reply) =>
        reply.result({
          task: taskOf('COMPLETED', {
            artifacts: Array.from({ length: 10_000 }, (_item, i) => ({ artifactId: `${i}`, parts: [] })),
          }),
        }),
      'The agent answered with neither a valid task nor a message',
    ],
    [
      'with an artifact that is too large',
      (_, reply) =>
        reply.result({
          task: taskOf('COMPLETED', {
            artifacts: [{ artifactId: 'a', parts: [{ text: 'x'.repeat(150_000) }] }],
          }),
        }),
      "The agent's output is larger than 100000 bytes",
    ],
    [
      'with an unknown state',
      (_, reply) =>
        reply.result({ task: { ...taskOf('WORKING'), status: { state: 'TASK_STATE_DREAMING' } } }),
      'The agent answered with neither a valid task nor a message',
    ],
    [
      'that redirects',
      (_, { response }) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      'The agent redirects requests (HTTP 302), which is refused',
    ],
    ['whose connection is reset', (_, { response }) => void response.socket?.resetAndDestroy(), 'not known'],
    [
      'that is reset in the middle',
      (_, { response }) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
        response.write('{"jsonrpc"')
        setTimeout(() => response.socket?.resetAndDestroy(), 20)
      },
      'not known',
    ],
    ['that never begins', () => {}, 'The agent did not answer in time'],
    [
      'that stops in the middle',
      (_, { response }) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.write('{"jsonrpc"')
      },
      'The agent did not answer in time',
    ],
  ])('%s fails the task with the reason', async (_what, script, reason) => {
    const ended = await endOf(script)
    expect(ended.state).toBe('failed')
    expect(ended.reason).toContain(reason)
    expect(ended.reason.length).toBeLessThan(300)
  })

  test('that is not UTF-8 is read with replacement characters', async () => {
    const { state, reason } = await endOf((request, { response }) => {
      const [before, after] = JSON.stringify({
        jsonrpc: '2.0',
        id: request.id,
        result: { task: taskOf('COMPLETED', {}, 'a|b') },
      }).split('|')
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(Buffer.concat([Buffer.from(before ?? ''), Buffer.from([0xff]), Buffer.from(after ?? '')]))
    })
    expect({ state, reason }).toEqual({ state: 'completed', reason: 'a\ufffdb' })
  })

  test('before the end of the request is read', async () => {
    const url = await rawServer((socket) => {
      const task = taskOf('COMPLETED', {}, 'Early')
      let isAnswered = false
      socket.on('data', (data) => {
        const id = /"id":"([^"]+)"/.exec(data.toString())?.[1]
        if (isAnswered || id === undefined) return
        isAnswered = true
        const body = JSON.stringify({ jsonrpc: '2.0', id, result: { task } })
        socket.end(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
        )
      })
    })
    const { caller } = await relayed(() => {}, { limits, url })
    const task = await caller.sendAndWait({ parts: [{ kind: 'text', text: 'x'.repeat(3_000_000) }] })
    expect(['completed', 'failed']).toContain(task.status.state)
    expect(task.status.message?.parts[0]).toBeDefined()
  })

  test('with a file at a private address passes the URI on and does not read it', async () => {
    const part = { url: 'http://169.254.169.254/latest', filename: 'f', mediaType: 'text/plain' }
    const local = { url: 'file:///etc/passwd' }
    const { state, artifacts } = await endOf((_, reply) =>
      reply.result({ task: taskOf('COMPLETED', { artifacts: [{ artifactId: 'a', parts: [part, local] }] }) }),
    )
    expect(state).toBe('completed')
    expect(artifacts[0]?.parts).toMatchObject([
      { kind: 'file', file: { uri: 'http://169.254.169.254/latest' } },
      { kind: 'text', text: 'file:///etc/passwd' },
    ])
  })

  test('with the text of a JWS is not signed by the relay', async () => {
    const header = Buffer.from('{"alg":"EdDSA","kid":"did:key:z#z"}').toString('base64url')
    const parts = [{ text: `${header}.e30` }, { text: 'Hi' }]
    const { artifacts } = await endOf(async (_, reply) => {
      reply.result({ task: taskOf('COMPLETED', { artifacts: [{ artifactId: 'a', parts }] }) })
    })
    const signed = artifacts[0]?.parts.map(
      ({ metadata }) => metadata?.['did.message.signature'] !== undefined,
    )
    expect(signed).toEqual([false, true])
  })
})

describe('a stream', () => {
  const streamed = (script: Script, deadlineMs?: number) =>
    endOf(script, { streaming: true, ...(deadlineMs !== undefined && { deadlineMs }) })

  test.each<[string, Script, string]>([
    ['without an end of the frame', endless('text/event-stream', 'data: '), 'A frame of the agent'],
    [
      'of comments',
      endless('text/event-stream', ':', '\n'),
      "The agent's stream is larger than 4000000 bytes",
    ],
    [
      'with 1,001 artifacts',
      (_, reply) => {
        reply.frame({ task: taskOf('WORKING') })
        for (let i = 0; i <= 1000; i += 1)
          reply.frame(chunk('x', { artifact: { artifactId: `${i}`, parts: [] } }))
      },
      "The agent's output has more than 1000 artifacts",
    ],
    [
      'with an artifact that grows without end',
      (_, reply) => {
        reply.frame({ task: taskOf('WORKING') })
        for (let i = 0; i < 20; i += 1) reply.frame(chunk('x'.repeat(10_000)))
      },
      "The agent's output is larger than 100000 bytes",
    ],
    [
      'about another task',
      (_, reply) => {
        reply.frame({ task: taskOf('WORKING') })
        reply.frame({ statusUpdate: { taskId: 't-2', contextId: 'c-1', status: statusOf('COMPLETED') } })
      },
      'The agent sent a frame of another task',
    ],
    [
      'with a question that is too large',
      (_, reply) => {
        reply.frame({ task: taskOf('INPUT_REQUIRED', {}, 'x'.repeat(1_100_000)) })
      },
      'A message of the agent is larger than 1048576 bytes',
    ],
    [
      'without frames',
      (_, reply) => void reply.response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
      'ended without a task',
    ],
  ])('%s fails the task with the reason', async (_what, script, reason) => {
    const ended = await streamed(script)
    expect(ended.state).toBe('failed')
    expect(ended.reason).toContain(reason)
  })

  test('that drips bytes ends at the deadline of the task', async () => {
    const ended = await streamed(async (_, { response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: ')
      while (!response.destroyed) {
        response.write('x')
        await wait(50)
      }
    }, 1500)
    expect(ended.state).toBe('failed')
    expect(ended.reason).toMatch(/1.5|1,500|1500|time/)
  })

  test('of 2,000 progress messages stores a few of them', async () => {
    const { caller } = await relayed(
      async (_, reply) => {
        reply.frame({ task: taskOf('WORKING') })
        for (let i = 0; i < 2000; i += 1) {
          reply.frame(status('WORKING', `Step ${i}`))
          if (i % 100 === 0) await wait(20)
        }
        reply.frame(status('COMPLETED', 'Done'))
        reply.end()
      },
      { streaming: true },
    )
    const task = await caller.sendAndWait('hello')
    expect(task.status).toMatchObject({ state: 'completed', message: { parts: [{ text: 'Done' }] } })
    expect(task.history.length).toBeLessThan(4)
  })

  test('that names another context, or goes back from its end, changes neither', async () => {
    const { caller, foreign } = await relayed(
      (_, reply) => {
        reply.frame({ task: taskOf('WORKING') })
        reply.frame({
          statusUpdate: { taskId: 't-1', contextId: 'c-2', status: statusOf('COMPLETED', 'Done') },
        })
        reply.frame(status('WORKING'))
        reply.end()
      },
      { streaming: true, limits },
    )
    const first = await caller.sendAndWait('hello')
    expect(first.status.state).toBe('completed')
    await caller.sendAndWait({ parts: [{ kind: 'text', text: 'more' }], contextId: first.context_id })
    expect(foreign.requests.at(-1)?.params['message']).toMatchObject({ contextId: 'c-1' })
  })
})

/** Answers with the same characters until the client closes the connection. */
function endless(type: string, begin = '', unit = 'x'): Script {
  return async (_request, { response }) => {
    response.writeHead(200, { 'content-type': type })
    response.write(begin)
    while (!response.destroyed) {
      response.write(unit.repeat(100_000))
      await wait(1)
    }
  }
}

async function rawServer(connected: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    connected(socket)
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  disposables.push({ [Symbol.asyncDispose]: async () => void server.close() })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}
