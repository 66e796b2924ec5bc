import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { registeredClient } from '@parley/tools/testing/registered-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'

let folder: string
let gateway: GatewayApp
let token: string
const webhook = { url: '', received: [] as { headers: http.IncomingHttpHeaders; body: string }[] }

const defineAgent = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href

async function addAgent(name: string, description: string, handle: string): Promise<void> {
  await mkdir(path.join(folder, 'agents', name), { recursive: true })
  await writeFile(
    path.join(folder, 'agents', name, 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(defineAgent)}
     export default defineAgent({
       name: '${name}', description: '${description}',
       skills: [{ id: '${name}', name: '${name}', description: '${description}', tags: ['${name}'] }],
       handle: ${handle},
     })`,
  )
}

const handle = `async ({ text, ask, history, signal }) => {
  if (text.startsWith('ask') && history.length === 1) return ask('what?')
  if (text.startsWith('hang')) await new Promise((resolve) => signal.addEventListener('abort', resolve))
  if (text.startsWith('slow')) await new Promise((resolve) => setTimeout(resolve, 1500))
  return 'done'
}`

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-a2a-'))
  await addAgent('weather', 'Weather forecast for any city', handle)
  await addAgent('chess', 'Plays chess and suggests the best move', handle)
  const receive = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    webhook.received.push({ headers: request.headers, body: await text(request) })
    response.end()
  }
  const receiver = http.createServer((request, response) => void receive(request, response))
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  webhook.url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  const settings = gatewayConfig({
    PATH: process.env['PATH'],
    HOME: folder,
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: path.join(folder, 'data'),
    WEBHOOK_ALLOWED_HOSTS: '127.0.0.1',
  })
  const log = makeLog({ level: 'silent', name: 'test' })
  gateway = await startGatewayApp({ settings, log, agentsDir: path.join(folder, 'agents') })
  await gateway.supervisor?.settled()
  token = await tokenOf('a client of A2A')
  return () => {
    receiver.closeAllConnections()
    receiver.close()
  }
}, 60_000)
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function tokenOf(name: string): Promise<string> {
  const at = { gatewayUrl: gateway.addresses.public, dataDir: path.join(folder, 'data') }
  return (await registeredClient(name, at)).token
}

/** An answer; `value` is the result, or the error. */
interface Answer {
  status: number
  headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  value: any
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  frames: any[]
}

interface Sent {
  method: string
  path: string
  body?: object | undefined
  headers?: Record<string, string>
  token?: string | undefined
}

async function ask(base: string, { method, path: at, body, headers = {}, ...given }: Sent): Promise<Answer> {
  const bearer = 'token' in given ? given.token : token
  const answer = await fetch(`${gateway.addresses.public}${base}${at}`, {
    method,
    headers: {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const content = await answer.text()
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
  const frames = isStream
    ? [...content.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
    : []
  const value = isStream || content === '' ? undefined : JSON.parse(content)
  return { status: answer.status, headers: answer.headers, value, frames }
}

type Names = Record<
  'send' | 'stream' | 'get' | 'cancel' | 'subscribe' | 'setPush' | 'getPush' | 'listPush' | 'deletePush',
  string
>

/** One way to call an agent or the gateway. */
interface Binding {
  message: (text: string, more?: object, waits?: boolean) => object
  call: (operation: keyof Names, params: object, more?: Partial<Sent>) => Promise<Answer>
  /** The parts of an answer that all dialects have. */
  task: (answer: Answer) => { id: string; contextId: string; state: string }
  push: (taskId: string) => object
}

const v1Names: Names = {
  send: 'SendMessage',
  stream: 'SendStreamingMessage',
  get: 'GetTask',
  cancel: 'CancelTask',
  subscribe: 'SubscribeToTask',
  setPush: 'CreateTaskPushNotificationConfig',
  getPush: 'GetTaskPushNotificationConfig',
  listPush: 'ListTaskPushNotificationConfigs',
  deletePush: 'DeleteTaskPushNotificationConfig',
}
const v03Names: Names = {
  send: 'message/send',
  stream: 'message/stream',
  get: 'tasks/get',
  cancel: 'tasks/cancel',
  subscribe: 'tasks/resubscribe',
  setPush: 'tasks/pushNotificationConfig/set',
  getPush: 'tasks/pushNotificationConfig/get',
  listPush: 'tasks/pushNotificationConfig/list',
  deletePush: 'tasks/pushNotificationConfig/delete',
}

const v1 = {
  message: (given: string, more: object = {}, waits = true) => ({
    message: { messageId: `m-${Math.random()}`, role: 'ROLE_USER', parts: [{ text: given }], ...more },
    configuration: { returnImmediately: !waits },
  }),
  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  taskIn: (value: any) => {
    const task = value.task ?? value
    return {
      id: task.id,
      contextId: task.contextId,
      state: task.status.state.replace('TASK_STATE_', '').toLowerCase(),
    }
  },
  push: (taskId: string) => ({ taskId, id: 'push/1', url: webhook.url, token: 'a-token' }),
}

function rpc(base: string, at: string, names: Names): Binding['call'] {
  return (operation, params, more = {}) => {
    const body = { jsonrpc: '2.0', id: 7, method: names[operation], params }
    return ask(base, { method: 'POST', path: at, body, ...more })
  }
}

const v1Rpc = (base: string, at: string): Binding => ({
  ...v1,
  call: rpc(base, at, v1Names),
  task: ({ value }) => v1.taskIn(value.result),
})

const v03 = (base: string): Binding => ({
  message: (given, more = {}, waits = true) => ({
    message: {
      messageId: `m-${Math.random()}`,
      kind: 'message',
      role: 'user',
      parts: [{ kind: 'text', text: given }],
      ...more,
    },
    configuration: { blocking: waits },
  }),
  call: rpc(base, '/a2a/v0.3', v03Names),
  task: ({ value: { result } }) => ({
    id: result.id,
    contextId: result.contextId,
    state: result.status.state,
  }),
  push: (taskId) => ({
    taskId,
    pushNotificationConfig: { id: 'push/1', url: webhook.url, token: 'a-token' },
  }),
})

const v1Rest = (base: string, prefix: string): Binding => ({
  ...v1,
  task: ({ value }) => v1.taskIn(value),
  call: (operation, given, more = {}) => {
    const { id, taskId, ...params } = given as { id?: string; taskId?: string }
    const configs = `/tasks/${taskId}/pushNotificationConfigs`
    const query = new URLSearchParams(params as Record<string, string>)
    const requests: Record<keyof Names, Sent> = {
      send: { method: 'POST', path: '/message:send', body: given },
      stream: { method: 'POST', path: '/message:stream', body: given },
      get: { method: 'GET', path: `/tasks/${id}?${query.toString()}` },
      cancel: { method: 'POST', path: `/tasks/${id}:cancel` },
      subscribe: { method: 'GET', path: `/tasks/${id}:subscribe` },
      setPush: { method: 'POST', path: configs, body: { ...given, id: 'push-1' } },
      getPush: { method: 'GET', path: `${configs}/push-1` },
      listPush: { method: 'GET', path: configs },
      deletePush: { method: 'DELETE', path: `${configs}/push-1` },
    }
    const sent = requests[operation]
    return ask(base, { ...sent, ...more, path: prefix + sent.path })
  },
})

const bases = ['', '/agents/weather']
const bindings: [string, Binding][] = bases.flatMap((base): [string, Binding][] => [
  [`A2A 1.0 at ${base}/a2a/v1`, v1Rpc(base, '/a2a/v1')],
  [`A2A 1.0 at ${base}/`, v1Rpc(base, '/')],
  [`REST of A2A 1.0 at ${base}/`, v1Rest(base, '')],
  [`REST of A2A 1.0 at ${base}/a2a/v1`, v1Rest(base, '/a2a/v1')],
  [`A2A 0.3 at ${base}/a2a/v0.3`, v03(base)],
])
bindings.push([`REST of A2A 1.0 at /a2a/v1/weather`, v1Rest('', '/a2a/v1/weather')])

describe.each(bindings)('%s', (name, { message, call, task, push }) => {
  const isRest = name.startsWith('REST')
  const isV1 = name.includes('1.0')
  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  const frameOf = (frame: any) => (isRest ? frame : frame.result)

  test('a blocking send is answered with the ended task, which can then be read', async () => {
    const sent = await call('send', message('weather forecast for any city'))
    expect([sent.status, task(sent).state]).toEqual([200, 'completed'])
    const { id } = task(sent)
    expect(task(await call('get', { id, historyLength: 0 }))).toEqual(task(sent))
  })

  test('a client that chooses its own context ID reaches the agent of this context', async () => {
    const contextId = `ctx/${Math.random()}`
    const first = await call('send', message('weather forecast', { contextId }))
    const second = await call('send', message('chess: the best move', { contextId }))
    expect([task(first).contextId, task(second).contextId]).toEqual([contextId, contextId])
    // The gateway names the agent only if the client does not.
    const agent = name.includes('weather') ? null : 'weather'
    expect([first, second].map(({ headers }) => headers.get('x-agent'))).toEqual([agent, agent])
  })

  test('a message with the ID of a paused task continues it, and one with an unknown ID is refused', async () => {
    const asked = await call('send', message('ask about the weather'))
    expect(task(asked).state).toBe(isV1 ? 'input_required' : 'input-required')
    const { id: taskId } = task(asked)
    expect(task(await call('send', message('go on', { taskId })))).toMatchObject({
      id: taskId,
      state: 'completed',
    })
    for (const unknown of [crypto.randomUUID(), 'tck-task']) {
      const refused = await call('send', message('weather', { taskId: unknown }))
      expect([refused.status, refused.value.error.code]).toEqual(isRest ? [404, 404] : [200, -32001])
    }
  })

  test('a stream, a subscription and a cancellation reach the agent of the task', async () => {
    const streamed = await call('stream', message('weather forecast'))
    const states = streamed.frames.map(frameOf)
    expect(streamed.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(states.length).toBeGreaterThan(1)
    const running = task(await call('send', message('hang weather', {}, false)))
    const subscribed = call('subscribe', { id: running.id })
    await expect.poll(async () => task(await call('get', { id: running.id })).state).toBe('working')
    expect(task(await call('cancel', { id: running.id })).state).toBe('canceled')
    const { frames } = await subscribed
    expect(JSON.stringify(frames.at(-1))).toMatch(/cancel/i)
  })

  test('a webhook can be set, read, listed and deleted, and receives events in the dialect', async () => {
    const { id: taskId } = task(await call('send', message('slow weather', {}, false)))
    const before = webhook.received.length
    const set = await call('setPush', push(taskId))
    expect([set.status, set.value.error]).toEqual([200, undefined])
    const named = isV1 ? { taskId, id: 'push/1' } : { id: taskId, pushNotificationConfigId: 'push/1' }
    const listed = isV1 ? { taskId } : { id: taskId }
    expect(JSON.stringify((await call('getPush', named)).value)).toContain(webhook.url)
    expect(JSON.stringify((await call('listPush', listed)).value)).toContain(webhook.url)
    await expect
      .poll(() => webhook.received.slice(before).some(({ body }) => /complete/i.test(body)))
      .toBe(true)
    expect(webhook.received.at(-1)?.headers['x-a2a-notification-token']).toBe('a-token')
    expect((await call('deletePush', named)).value?.error).toBeUndefined()
  })

  test('errors before and after authentication have the form of the dialect', async () => {
    const anonymous = await call('get', { id: crypto.randomUUID() }, { token: undefined })
    expect(anonymous.status).toBe(401)
    expect(anonymous.headers.get('www-authenticate')).toMatch(/^Bearer/)
    const missing = await call('get', { id: crypto.randomUUID() })
    expect(missing.status).toBe(isRest ? 404 : 200)
    const form = isRest
      ? { error: { code: 404, status: 'NOT_FOUND' } }
      : { jsonrpc: '2.0', id: 7, error: { code: -32001 } }
    expect(missing.value).toMatchObject(form)
    const refusal = isRest
      ? { error: { code: 401, status: 'UNAUTHENTICATED' } }
      : { id: 7, error: { code: -32000 } }
    expect(anonymous.value).toMatchObject(refusal)
    const old = await call('get', { id: crypto.randomUUID() }, { headers: { 'a2a-version': '9.9' } })
    expect([old.status, JSON.stringify(old.value)]).toEqual([
      isRest ? 400 : old.status,
      expect.stringMatching(/version/i),
    ])
  })
})
