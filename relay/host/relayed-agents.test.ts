import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { AgentClient } from '@parley/client/internal/client'
import { HttpIntrospector } from '@parley/kit/auth/introspection'
import type { RelayedAgent } from '@parley/kit/auth/relayed-agent'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { gatewayIdentity } from '@parley/kit/did/identity'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { agentConfig } from '@parley/kit/process/config'
import { makeLog } from '@parley/kit/process/log'
import { type ForeignAgent, type ForeignScript, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { type LinkStore, linkDays, linksIn, markedForMs, openLinks } from '../store/links.ts'
import { startRelayServer } from './relay-server.ts'
import { RelayedAgents } from './relayed-agents.ts'

const disposables: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of disposables.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

const taskOf = (state: string) => ({ id: 't-1', contextId: 'c-1', status: { state: `TASK_STATE_${state}` } })
const hello: ForeignScript = (_request, reply) =>
  reply.result({ message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'Hi' }] } })

test('an app is opened by the first request, and serves the agent at its path', async () => {
  const relay = await startRelay()
  const foreign = await foreignAgent(hello)
  await relay.change('one', foreign)
  await relay.change('two', foreign)
  expect(relay.agents.openCount).toBe(0)
  const task = await relay.caller('one').sendAndWait('hello')
  expect(task.status).toMatchObject({ state: 'completed', message: { parts: [{ text: 'Hi' }] } })
  expect(relay.agents.openCount).toBe(1)
  const card = await fetch(`${relay.url}/one/.well-known/agent-card.json`)
  expect(await card.json()).toMatchObject({ name: 'Foreign one', skills: [{ id: 'greet-', name: 'Greet' }] })
})

test('relays with the same key have the same agents, on any machine', async () => {
  const foreign = await foreignAgent(hello)
  const didAt = async (slug: string, seed: number) => {
    const relay = await startRelay({ seed })
    await relay.change(slug, foreign)
    const card = z.object({ did: z.string() })
    return card.parse(await (await fetch(`${relay.url}/${slug}/.well-known/agent.json`)).json()).did
  }
  const did = await didAt('one', 1)
  expect(await didAt('one', 1)).toBe(did)
  expect(await didAt('two', 1)).not.toBe(did)
  expect(await didAt('one', 2)).not.toBe(did)
})

test('an unknown agent is awaited for a short time', async () => {
  const relay = await startRelay()
  const foreign = await foreignAgent(hello)
  const task = relay.caller('late').sendAndWait('hello')
  await relay.change('late', foreign)
  expect((await task).status.state).toBe('completed')
})

test('an idle app is closed, and one with an open task is not', async () => {
  const relay = await startRelay({ idleMs: 50, checkEveryMs: 20 })
  await relay.change('done', await foreignAgent(hello))
  await relay.change(
    'busy',
    await foreignAgent((_request, reply) => reply.result({ task: taskOf('INPUT_REQUIRED') })),
  )
  await relay.caller('busy').sendAndWait('hello')
  const task = await relay.caller('done').sendAndWait('hello')
  await expect.poll(() => relay.agents.openCount).toBe(1)
  expect(await relay.caller('done').get(task.id)).toMatchObject({ status: { state: 'completed' } })
})

test('the app of a relay that no longer runs is opened by another relay, so that its tasks continue', async () => {
  const documents = memoryDocuments()
  const other = linksIn(documents, 'another machine')
  const relay = await startRelay({ links: linksIn(documents, 'this machine'), checkEveryMs: 20 })
  await relay.change('one', await foreignAgent(hello))
  await relay.change('two', await foreignAgent(hello))
  expect(relay.agents.openCount).toBe(0)
  await other.markOpen('two')
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() - markedForMs - 1000)
  await other.markOpen('one')
  clock.mockRestore()
  await expect.poll(() => relay.agents.openCount).toBe(1)
  await relay.caller('one').sendAndWait('hello')
  expect(relay.agents.openCount).toBe(1)
})

test('expired links are removed', async () => {
  const links = linksIn(memoryDocuments(), 'this machine')
  const link = { messageId: 'm', isAnswered: true, isEnded: true }
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() - (linkDays + 1) * 86_400_000)
  await links.saveTask('one', 'old', link)
  clock.mockRestore()
  await links.saveTask('one', 'new', link)
  await startRelay({ links, checkEveryMs: 20 })
  await expect.poll(() => links.task('one', 'old')).toBeUndefined()
  expect(await links.task('one', 'new')).toEqual(link)
})

test('an idle app with undelivered webhook events is not closed', async () => {
  const receiver = await WebhookReceiver.start({ answer: 503 })
  disposables.push(receiver)
  const relay = await startRelay({ idleMs: 50, checkEveryMs: 20 })
  await relay.change('one', await foreignAgent(hello))
  const pushNotificationConfig = { id: crypto.randomUUID(), url: receiver.url }
  const sent = await relay.caller('one').send('hello', { pushNotificationConfig })
  await receiver.waitFor(1)
  await expect.poll(async () => (await relay.caller('one').get(sent.id)).status.state).toBe('completed')
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(relay.agents.openCount).toBe(1)
  receiver.answer = 200
  await expect.poll(() => relay.agents.openCount, { timeout: 20_000 }).toBe(0)
  expect(receiver.posts.at(-1)?.event).toMatchObject({ kind: 'status-update', final: true })
})

test('a cancellation reaches the agent, also for a paused task', async () => {
  const relay = await startRelay()
  const foreign = await foreignAgent(({ method }, reply) =>
    reply.result(method === 'CancelTask' ? taskOf('CANCELED') : { task: taskOf('INPUT_REQUIRED') }),
  )
  await relay.change('one', foreign)
  const task = await relay.caller('one').sendAndWait('hello')
  await relay.caller('one').cancel(task.id)
  await expect.poll(() => foreign.requests.map(({ method }) => method)).toContain('CancelTask')
  expect(foreign.requests.at(-1)?.params).toMatchObject({ id: 't-1' })
})

test('a cancellation before the agent has named its task reaches the task later', async () => {
  const relay = await startRelay()
  const named = Promise.withResolvers<void>()
  const foreign = await foreignAgent(async ({ method }, reply) => {
    if (method === 'SendMessage') await named.promise
    reply.result(method === 'CancelTask' ? taskOf('CANCELED') : { task: taskOf('WORKING') })
  })
  await relay.change('one', foreign)
  const task = await relay.caller('one').send('hello')
  await expect.poll(() => foreign.requests.length).toBe(1)
  await relay.caller('one').cancel(task.id)
  await expect.poll(async () => (await relay.caller('one').get(task.id)).status.state).toBe('canceled')
  expect(foreign.requests).toHaveLength(1)
  named.resolve()
  await expect.poll(() => foreign.requests.map(({ method }) => method)).toEqual(['SendMessage', 'CancelTask'])
  expect(foreign.requests.at(-1)?.params).toMatchObject({ id: 't-1' })
})

test('a bare message after a cancellation is dropped', async () => {
  const relay = await startRelay()
  const named = Promise.withResolvers<void>()
  const foreign = await foreignAgent(async (_request, reply) => {
    await named.promise
    reply.result({ message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'Hi' }] } })
  })
  await relay.change('one', foreign)
  const task = await relay.caller('one').send('hello')
  await expect.poll(() => foreign.requests.length).toBe(1)
  await relay.caller('one').cancel(task.id)
  named.resolve()
  await new Promise((resolve) => setTimeout(resolve, 600))
  expect(foreign.requests).toHaveLength(1)
  expect((await relay.caller('one').get(task.id)).status.state).toBe('canceled')
})

test('open tasks continue after a restart without a request', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'relay-'))
  let isDone = false
  const foreign = await foreignAgent(({ method }, reply) =>
    reply.result(
      method === 'SendMessage' ? { task: taskOf('WORKING') } : taskOf(isDone ? 'COMPLETED' : 'WORKING'),
    ),
  )
  const first = await startRelay({ folder })
  await first.change('one', foreign)
  const task = await first.caller('one').send('hello')
  await expect.poll(() => foreign.requests.length).toBeGreaterThan(1)
  await first.stop()
  isDone = true
  const second = await startRelay({ folder, provider: first.provider })
  await second.change('one', foreign)
  await expect.poll(() => second.agents.openCount).toBe(1)
  await expect.poll(async () => (await second.caller('one').get(task.id)).status.state).toBe('completed')
  expect(foreign.requests.filter(({ method }) => method === 'SendMessage')).toHaveLength(1)
})

describe('an agent whose process is killed in the middle of a task', () => {
  test.each([
    ['the task is known', 'answers', 'The agent is no longer reachable'],
    ['the message is unanswered', 'is silent', 'It is not known whether it has received the message'],
  ])('fails the task with the reason, when %s', async (_when, behaviour, reason) => {
    const relay = await startRelay()
    const foreign = await startForeignProcess(behaviour)
    await relay.change('one', foreign)
    const task = await relay.caller('one').send('hello')
    await once(foreign.process, 'message')
    foreign.process.kill('SIGKILL')
    const ended = await relay.caller('one').wait(task.id, { signal: AbortSignal.timeout(15_000) })
    expect(ended.status.state).toBe('failed')
    expect(JSON.stringify(ended.status.message)).toContain(reason)
  })

  test('fails the task when the process that replaces it does not know the task', async () => {
    const relay = await startRelay({ unreachableMaxMs: 20_000 })
    const foreign = await startForeignProcess('answers')
    await relay.change('one', foreign)
    const task = await relay.caller('one').send('hello')
    await once(foreign.process, 'message')
    foreign.process.kill('SIGKILL')
    await once(foreign.process, 'exit')
    await startForeignProcess('has forgotten', Number(new URL(foreign.url).port))
    const ended = await relay.caller('one').wait(task.id, { signal: AbortSignal.timeout(25_000) })
    expect(ended.status.state).toBe('failed')
    expect(JSON.stringify(ended.status.message)).toContain('The agent no longer knows the task')
  })
})

test('a new credential is used by the next message, and a removed agent is not served', async () => {
  const relay = await startRelay()
  const foreign = await foreignAgent(hello)
  await relay.change('one', foreign)
  await relay.caller('one').sendAndWait('hello')
  await relay.change('one', foreign, { credential: { kind: 'bearer', token: 'T' } })
  await relay.caller('one').sendAndWait('hello')
  expect(foreign.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, 'Bearer T'])
  await relay.agents.change({ type: 'relayed-agent', slug: 'one' })
  const { status } = await fetch(`${relay.url}/one/.well-known/agent-card.json`)
  expect(status).toBe(503)
})

test('another agent with the slug of a removed one receives none of its tasks', async () => {
  const relay = await startRelay()
  const removed = await foreignAgent((_request, reply) =>
    reply.result({ task: { ...taskOf('WORKING'), contextId: 'secret' } }),
  )
  await relay.change('one', removed, { id: 'first' })
  const task = await relay.caller('one').send('hello')
  await expect.poll(() => removed.requests.length).toBeGreaterThan(1)
  await relay.agents.change({ type: 'relayed-agent', slug: 'one' })
  const next = await foreignAgent(hello)
  await relay.change('one', next, { id: 'second' })
  await expect(relay.caller('one').get(task.id)).rejects.toMatchObject({ code: -32_001 })
  const { id } = await relay.caller('one').send('hello', { contextId: task.context_id })
  await relay.caller('one').wait(id, { signal: AbortSignal.timeout(20_000) })
  expect(next.requests).toHaveLength(1)
  expect(JSON.stringify(next.requests[0]?.params)).not.toContain('secret')
})

test('the data of a removed agent is removed after RETENTION_DAYS', async () => {
  const relay = await startRelay({ retentionEveryMs: 20, retentionDays: 30 })
  const foreign = await foreignAgent(hello)
  for (const slug of ['one', 'two']) {
    await relay.change(slug, foreign, { id: `entry-${slug}` })
    await relay.caller(slug).sendAndWait('hello')
  }
  await relay.agents.change({ type: 'relayed-agent', slug: 'one' })
  const absent = async () => (await relay.links.stores()).filter(({ absentSince }) => absentSince)
  await expect.poll(absent).toMatchObject([{ agent: 'entry-one' }])
  expect(await readdir(path.join(relay.folder, 'agents'))).toEqual(['entry-one', 'entry-two'])
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 31 * 86_400_000)
  await expect.poll(() => readdir(path.join(relay.folder, 'agents'))).toEqual(['entry-two'])
  vi.restoreAllMocks()
})

/** Starts an agent as a process, which sends a message after the first read of its task, or when it receives a message. */
async function startForeignProcess(behaviour: string, port = 0) {
  const server = import.meta.resolve('@parley/tools/testing/foreign-agent')
  const code = `
    import { startForeignAgent } from '${server}'
    const task = { id: 't-1', contextId: 'c-1', status: { state: 'TASK_STATE_WORKING' } }
    const agent = await startForeignAgent(({ method }, reply) => {
      if ('${behaviour}' === 'has forgotten') return reply.error(-32001, 'Task not found')
      if ('${behaviour}' === 'is silent') return process.send('received')
      reply.result(method === 'SendMessage' ? { task } : task)
      if (method === 'GetTask') process.send('read')
    }, ${port})
    process.send(agent.url)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  disposables.push({
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
    },
  })
  const [url]: unknown[] = await once(child, 'message')
  return { url: String(url), process: child }
}

async function foreignAgent(script: ForeignScript): Promise<ForeignAgent> {
  const agent = await startForeignAgent(script)
  disposables.push(agent)
  return agent
}

async function startRelay(
  options: ConstructorParameters<typeof RelayedAgents>[1] & {
    folder?: string
    retentionDays?: number
    unreachableMaxMs?: number
    seed?: number
    provider?: TestIdentityProvider
    links?: LinkStore
  } = {},
) {
  const { unreachableMaxMs = 300, seed = 1, retentionDays = 0 } = options
  const folder = options.folder ?? (await mkdtemp(path.join(os.tmpdir(), 'relay-')))
  const provider = options.provider ?? (await TestIdentityProvider.start())
  if (options.provider === undefined) disposables.push(provider)
  const { config } = agentConfig({
    DATA_DIR: folder,
    LOG_LEVEL: 'silent',
    WEBHOOK_ALLOWED_HOSTS: '127.0.0.1',
    RETENTION_DAYS: String(retentionDays),
  })
  const introspector = new HttpIntrospector({
    url: provider.url,
    clientId: 'relay',
    clientSecret: 's',
    timeoutMs: 3000,
  })
  const links = options.links ?? (await openLinks({ storeUrl: undefined, folder }))
  const agents = new RelayedAgents(
    {
      config,
      relay: gatewayIdentity({ seed: Buffer.alloc(32, seed), author: 'relay', name: 'agent' }),
      links,
      introspector,
      log: makeLog({ level: 'silent', name: 'relay' }),
      allowed: parseAllowedHosts('127.0.0.1'),
      timing: { pollMs: 20, pollMaxMs: 50, unreachableMaxMs },
      drainMs: 100,
    },
    options,
  )
  const server = await startRelayServer(agents, {
    host: '127.0.0.1',
    port: 0,
    log: makeLog({ level: 'silent', name: 'relay' }),
  })
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    await server[Symbol.asyncDispose]()
    await agents[Symbol.asyncDispose]()
    await links[Symbol.asyncDispose]()
  }
  disposables.push({ [Symbol.asyncDispose]: stop })
  const token = provider.issue('alice', { scope: 'agent:read agent:write' })
  return {
    agents,
    folder,
    links,
    provider,
    stop,
    url: server.address,
    change: (slug: string, { url }: Pick<ForeignAgent, 'url'>, more: Partial<RelayedAgent> = {}) =>
      agents.change({ type: 'relayed-agent', slug, agent: { ...descriptionOf(slug, url), ...more } }),
    caller: (slug: string) => {
      const client = new AgentClient({ url: `${server.address}/${slug}/`, token })
      return Object.assign(client, {
        sendAndWait: async (text: string) => {
          const { id } = await client.send(text)
          return client.wait(id, { signal: AbortSignal.timeout(20_000) })
        },
      })
    },
  }
}

function descriptionOf(slug: string, url: string): RelayedAgent {
  return {
    id: slug,
    name: `Foreign ${slug}`,
    description: 'Greets',
    version: '1.0.0',
    url,
    dialect: 'a2a-v1',
    streaming: false,
    skills: [
      {
        id: 'greet!',
        name: 'Greet',
        description: 'Greets',
        tags: ['hi'],
        inputModes: ['text'],
        outputModes: [],
      },
    ],
    publicUrl: `http://gateway.test/agents/${slug}`,
    audiences: [],
  }
}
