import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ConnectionError, RpcError } from '@parley/client/internal/client'
import { ClientToken } from '@parley/kit/auth/client-token'
import { type A2aBinding, A2aCaller, type A2aMessage, a2aBindings } from '@parley/tools/testing/a2a-caller'
import { type ForeignAgent, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { expect } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import { Deployment } from './harness/deployment.ts'
import { operatorClient, readClient } from './harness/operator.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

let deployment: Deployment
let foreign: ForeignAgent
let tokens: ClientToken
/** The texts of the tasks that have ended at the foreign agent. */
const done = new Set<string>()
/** The tasks of the foreign agent, by the text of their message. */
const texts = new Map<string, string>()

test.beforeAll(async ({ backends }) => {
  foreign = await startForeignAgent(({ method, params }, reply) => {
    const taskOf = (id: string, state: string) => {
      const artifacts = [{ artifactId: 'a', parts: [{ text: `done: ${texts.get(id)}` }] }]
      const status = { state: `TASK_STATE_${state}` }
      return { id, contextId: 'c', status, ...(state === 'COMPLETED' && { artifacts }) }
    }
    if (method === 'SendMessage') {
      const { text } = (params['message'] as { parts: [{ text: string }] }).parts[0]
      texts.set(randomUUID(), text)
    }
    const id = method === 'SendMessage' ? ([...texts.keys()].at(-1) ?? '') : String(params['id'])
    const text = texts.get(id) ?? ''
    const task = taskOf(id, done.has(text) || text.startsWith('soon') ? 'COMPLETED' : 'WORKING')
    reply.result(method === 'SendMessage' ? { task } : task)
  })
  foreign.card = {
    name: 'Greeter',
    description: 'Greets people in their language',
    version: '1.0.0',
    supportedInterfaces: [{ url: `${foreign.url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    skills: [{ id: 'greet', name: 'Greet', description: 'Greets people', tags: [] }],
  }
  const agents = path.join(import.meta.dirname, 'agents')
  deployment = await Deployment.start(backends, { REGISTRY_ALLOWED_HOSTS: '127.0.0.1' }, agents)
  tokens = new ClientToken({
    ...readClient(deployment.dataDir, 'dev-client.json'),
    scope: 'agent:read agent:write',
  })
  await post('/registry/agents', await tokens.get(), { url: foreign.url })
  const operator = new ClientToken({ ...operatorClient(deployment.dataDir), scope: 'agent:admin' })
  await post('/registry/agents/greeter/admit', await operator.get(), {})
})
test.afterAll(async () => {
  await deployment?.remove()
  await foreign?.[Symbol.asyncDispose]()
})

async function post(route: string, token: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${deployment.url}${route}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  expect([response.status, response.ok ? '' : await response.text()]).toEqual([response.status, ''])
}

const callerAt = (gateway: string, binding: A2aBinding = 'jsonrpc-1.0') =>
  new A2aCaller({ binding, url: `${gateway}/agents/greeter`, token: () => tokens.get(), timeoutMs: 100_000 })
const messageOf = (text: string, more: Partial<A2aMessage> = {}): A2aMessage => ({
  text,
  messageId: randomUUID(),
  key: randomUUID(),
  ...more,
})
const sentTimes = (text: string) => [...texts.values()].filter((one) => one === text).length

/** Repeats a call at the gateways in turn after a lost connection and after -32042, as clients should. */
async function patiently<T>(call: (caller: A2aCaller) => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    const gateway = deployment.gateways[attempt % deployment.gateways.length] ?? ''
    try {
      return await call(callerAt(gateway))
    } catch (error) {
      const again = error instanceof ConnectionError || (error instanceof RpcError && error.code === -32_042)
      if (!again || attempt === 200) throw error
      await wait(250)
    }
  }
}

/** The command line of a process, which is empty if it has ended. */
function wordsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}

/** The ids of this deployment's processes with the text in their command line. */
const pidsOf = (text: string) =>
  deployment.processes().filter((pid) => {
    const words = wordsOf(pid)
    return words[0]?.endsWith('node') === true && words.some((word) => word.includes(text))
  })

for (const binding of a2aBindings)
  test(`an agent of another vendor answers at every gateway, over ${binding}`, async () => {
    for (const [number, gateway] of deployment.gateways.entries()) {
      const text = `soon ${binding} ${number}`
      const { task } = await callerAt(gateway, binding).send(messageOf(text))
      expect(task.state).toBe('completed')
      for (const other of deployment.gateways)
        expect(await callerAt(other, binding).get(task.id)).toMatchObject({ id: task.id, state: 'completed' })
      expect(sentTimes(text)).toBe(1)
    }
  })

test('after SIGKILL of the relay, its task continues and a call that waits for it is answered', async () => {
  const message = messageOf('long')
  const sent = patiently((caller) => caller.send(message))
  await expect.poll(() => sentTimes('long')).toBe(1)
  const relays = pidsOf('relay-process')
  expect(relays.length).toBeGreaterThan(0)
  for (const pid of relays) process.kill(pid, 'SIGKILL')
  // The next process of the relay continues without a request for the agent.
  const { length } = foreign.requests
  await expect.poll(() => pidsOf('relay-process').filter((pid) => !relays.includes(pid)).length).toBe(1)
  await expect.poll(() => foreign.requests.length).toBeGreaterThan(length)
  done.add('long')
  expect((await sent).task.state).toBe('completed')
  expect(sentTimes('long')).toBe(1)
})

test('after SIGKILL of a gateway, a call that waits is answered at the other with the same task', async () => {
  const [first = '', second = ''] = deployment.gateways
  const message = messageOf('lost', { contextId: 'a context of the caller' })
  const broken = callerAt(second).send(message)
  broken.catch(() => {})
  await expect.poll(() => sentTimes('lost')).toBe(1)
  const [pid = 0] = pidsOf('gateway-process')
  process.kill(pid, 'SIGKILL')
  await expect(broken).rejects.toThrow(ConnectionError)
  const again = callerAt(first).send(message)
  done.add('lost')
  const { task } = await again
  expect([task.state, task.contextId, sentTimes('lost')]).toEqual(['completed', 'a context of the caller', 1])
  await expect(async () => expect(await callerAt(second).get(task.id)).toMatchObject({ ...task })).toPass()
})

test('a task that runs during a restart of everything continues, and earlier tasks are listed', async () => {
  const { task } = await patiently((caller) => caller.send(messageOf('restart', { waits: false })))
  await expect.poll(() => sentTimes('restart')).toBe(1)
  expect(await deployment.stop()).toBe(0)
  await deployment.startAgain()
  const { length } = foreign.requests
  await expect.poll(() => foreign.requests.length).toBeGreaterThan(length)
  done.add('restart')
  await expect.poll(async () => (await patiently((caller) => caller.get(task.id))).state).toBe('completed')
  expect(sentTimes('restart')).toBe(1)
  for (const gateway of deployment.gateways) {
    const { tasks, totalSize } = await callerAt(gateway).list(50, '')
    expect([tasks.length, tasks.some(({ id }) => id === task.id)]).toEqual([totalSize, true])
  }
})
