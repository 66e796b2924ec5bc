import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { AgentClient } from '@parley/client/internal/client'
import { type ForeignAgent, type ForeignScript, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { RegistrationGateway } from './registration/testing.ts'

let gateway: RegistrationGateway
const agents: ForeignAgent[] = []

beforeEach(async () => {
  gateway = await RegistrationGateway.open()
  await gateway.start({}, {}, { agentsDir: path.join(gateway.folder, 'agents') })
})
afterEach(async () => {
  await gateway[Symbol.asyncDispose]()
  for (const agent of agents.splice(0)) await agent[Symbol.asyncDispose]()
})

const greet: ForeignScript = (_request, reply) =>
  reply.result({ message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'Hi' }] } })

const cardOf = (url: string, more: object = {}) => ({
  name: 'Greeter',
  description: 'Greets people',
  version: '2.0.0',
  supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'greet', name: 'Greet', description: 'Greets people', tags: ['greeting'] }],
  ...more,
})

test('a foreign agent is registered by its URL, and its tasks are kept by the gateway', async () => {
  const foreign = await startForeign(greet)
  const { status, json } = await post('/registry/agents', await gateway.carol(), { url: foreign.url })
  expect(status).toBe(201)
  expect(json).toMatchObject({ slug: 'greeter', verified: false, external: false })
  await admit()
  const caller = new AgentClient({ url: `${address()}/agents/greeter/`, token: await gateway.carol() })
  const sent = await caller.send('hello')
  const task = await caller.wait(sent.id, { signal: AbortSignal.timeout(30_000) })
  expect(task.status).toMatchObject({ state: 'completed', message: { parts: [{ text: 'Hi' }] } })
  expect(foreign.requests[0]).toMatchObject({ method: 'SendMessage', url: '/rpc' })
  expect(foreign.requests[0]?.headers.authorization).toBeUndefined()
  const all = new AgentClient({ url: address(), token: await gateway.carol() })
  expect((await all.get(sent.id)).id).toBe(sent.id)
  expect(JSON.stringify(await all.call('tasks/list'))).toContain(sent.id)
  await foreign[Symbol.asyncDispose]()
  expect((await caller.get(sent.id)).status.state).toBe('completed')
})

test('tasks of an unreachable foreign agent can be read, listed and canceled; messages are refused', async () => {
  const foreign = await startForeign((_request, reply) =>
    reply.result({ task: { id: 't', status: { state: 'TASK_STATE_INPUT_REQUIRED' } } }),
  )
  await post('/registry/agents', await gateway.carol(), { url: foreign.url })
  await admit()
  const named = new AgentClient({ url: `${address()}/agents/greeter/`, token: await gateway.carol() })
  const all = new AgentClient({ url: address(), token: await gateway.carol() })
  const { id } = await named.send('hello')
  await expect.poll(async () => (await named.get(id)).status.state).toBe('input-required')
  const { registry } = gateway.gateway
  const down = registry.find('greeter')?.id ?? ''
  await foreign[Symbol.asyncDispose]()
  registry.setStatus(down, 'unreachable')
  const refused = { code: -32042, data: { reason: 'agent_down' } }
  for (const client of [named, all]) {
    expect((await client.get(id)).status.state).toBe('input-required')
    expect(JSON.stringify(await client.call('tasks/list'))).toContain(id)
    await expect(client.send({ text: 'again', taskId: id })).rejects.toMatchObject(refused)
  }
  await expect(named.send('hello')).rejects.toMatchObject(refused)
  expect((await all.cancel(id)).status.state).toBe('canceled')
})

test('a card in A2A 1.0 calls the agent through the gateway, with an A2A client of any version', async () => {
  const foreign = await startForeign(greet)
  await post('/registry/agents', await gateway.carol(), { url: `${foreign.url}/.well-known/agent-card.json` })
  await admit()
  const token = await gateway.carol()
  const card = await fetch(`${address()}/agents/greeter/.well-known/agent-card.json`)
  const read = await card.json()
  expect(JSON.stringify(read)).not.toContain(foreign.url)
  // The relay offers both for agents that do not.
  expect(read).toMatchObject({ capabilities: { streaming: true, pushNotifications: true } })
  const parts = [{ text: 'hello' }]
  const { json } = await post('/agents/greeter/a2a/v1', token, {
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: { message: { messageId: 'm', role: 'ROLE_USER', parts } },
  })
  expect(json).toMatchObject({ id: 1, result: { message: { parts: [{ text: 'Hi' }] } } })
})

test.each(['', '/agents/greeter'])(
  'a task is listed while the call at "%s" that created it waits for it',
  async (base) => {
    const answered = Promise.withResolvers<void>()
    const foreign = await startForeign(async (request, reply) => {
      await answered.promise
      await greet(request, reply)
    })
    await post('/registry/agents', await gateway.carol(), { url: foreign.url })
    await admit()
    const token = await gateway.carol()
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'greet people' }] }
    const call = (path: string, method: string, params: object) =>
      post(path, token, { jsonrpc: '2.0', id: 1, method, params })
    const sent = call(`${base}/a2a/v1`, 'SendMessage', { message })
    await expect.poll(() => foreign.requests.length, { timeout: 30_000 }).toBe(1)
    const { json } = await call('/a2a/v1', 'ListTasks', {})
    expect(json).toMatchObject({
      result: { totalSize: 1, tasks: [{ status: { state: 'TASK_STATE_WORKING' } }] },
    })
    answered.resolve()
    expect((await sent).status).toBe(200)
  },
)

test('the credential that an operator sets is sent to the agent, and appears nowhere', async () => {
  const foreign = await startForeign(greet, {
    securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
  })
  await post('/registry/agents', await gateway.carol(), { url: foreign.url })
  const admitted = await admit({ credential: 'SECRET' })
  expect(admitted.status).toBe(200)
  const caller = new AgentClient({ url: `${address()}/agents/greeter/`, token: await gateway.carol() })
  const { id } = await caller.send('hello')
  await caller.wait(id, { signal: AbortSignal.timeout(30_000) })
  expect(foreign.requests[0]?.headers['x-key']).toBe('SECRET')
  const entry = await fetch(`${address()}/registry/agents/greeter`)
  expect((await entry.text()) + JSON.stringify(admitted.json) + gateway.logged.join('')).not.toContain(
    'SECRET',
  )
})

test('the registry shows that an agent is relayed, in which dialect, and why it is not verified', async () => {
  const foreign = await startForeign(greet)
  await post('/registry/agents', await gateway.carol(), { url: foreign.url })
  const relay = {
    dialect: 'a2a-v1',
    version: '1.0',
    streaming: false,
    security: [],
    card_signature: { verified: false, reason: 'unsigned' },
  }
  const entry = await fetch(`${address()}/registry/agents/greeter`)
  expect(await entry.json()).toMatchObject({ verified: false, relay })
})

test('a credential that cannot be used prevents the admission', async () => {
  const foreign = await startForeign(greet, {
    securitySchemes: {
      o: {
        oauth2SecurityScheme: {
          flows: { clientCredentials: { tokenUrl: 'http://127.0.0.1:9/token', scopes: {} } },
        },
      },
    },
    securityRequirements: [{ schemes: { o: { list: [] } } }],
  })
  await post('/registry/agents', await gateway.carol(), { url: foreign.url })
  expect((await admit({ credential: 'no-separator' })).status).toBe(400)
  expect(gateway.gateway.registry.find('greeter')?.admitted).toBe(false)
  expect((await admit({ credential: 'me:secret' })).status).toBe(200)
})

test.each([
  [
    { supportedInterfaces: [{ url: 'a.test:1', protocolBinding: 'GRPC', protocolVersion: '1.0' }] },
    'The agent offers GRPC only. It has to offer JSONRPC of A2A 0.2, 0.3 or 1.0',
  ],
  [
    {
      supportedInterfaces: [{ url: 'http://10.0.0.1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    },
    'The host of the URL is not on the public internet',
  ],
  [
    { securitySchemes: { m: { type: 'mutualTLS' } }, security: [{ m: [] }] },
    'The agent requires an authentication that is not supported',
  ],
])('a card with %j is refused with the reason', async (more, reason) => {
  const foreign = await startForeign(greet, more)
  const { status, json } = await post('/registry/agents', await gateway.carol(), { url: foreign.url })
  expect(status).toBe(400)
  expect(JSON.stringify(json)).toContain(reason)
})

test('a changed card is read again, and another origin of the interface ends the admission', async () => {
  const foreign = await startForeign(greet)
  await post('/registry/agents', await gateway.carol(), { url: foreign.url })
  await admit()
  const card = { ...cardOf(foreign.url), description: 'Greets everyone' }
  foreign.card = card
  const entry = () => gateway.gateway.registry.find('greeter')
  await expect.poll(() => entry()?.description, { timeout: 20_000 }).toBe('Greets everyone')
  expect(entry()).toMatchObject({ admitted: true, cardChanges: [{ field: 'description' }] })
  const other = await startForeign(greet)
  foreign.card = { ...card, supportedInterfaces: cardOf(other.url).supportedInterfaces }
  await post('/registry/agents', await gateway.carol(), { url: foreign.url })
  expect(entry()?.admitted).toBe(false)
})

const hasNft = process.getuid?.() === 0 && spawnSync('nft', ['list', 'ruleset']).status === 0

test.skipIf(!hasNft)(
  'with AGENT_EGRESS, the relay reaches the servers of admitted agents only (needs nft)',
  async () => {
    await gateway[Symbol.asyncDispose]()
    gateway = await RegistrationGateway.open()
    const env = { AGENT_EGRESS: '127.0.0.1:9', AGENT_ISOLATION: 'user' }
    await gateway.start(env, {}, { agentsDir: path.join(gateway.folder, 'agents') })
    const [first, second] = [await startForeign(greet), await startForeign(greet, { name: 'Second' })]
    for (const { url } of [first, second]) await post('/registry/agents', await gateway.carol(), { url })
    await admit()
    const send = async (slug: string) => {
      const caller = new AgentClient({ url: `${address()}/agents/${slug}/`, token: await gateway.carol() })
      const { id } = await caller.send('hello')
      return (await caller.wait(id, { signal: AbortSignal.timeout(30_000) })).status.state
    }
    expect(await send('greeter')).toBe('completed')
    const rules = () => spawnSync('nft', ['list', 'ruleset'], { encoding: 'utf8' }).stdout
    expect(rules()).toContain(`dport ${new URL(first.url).port} accept`)
    expect(rules()).not.toContain(`dport ${new URL(second.url).port} accept`)
    await post('/registry/agents/second/admit', await gateway.operator(), {})
    expect(await send('second')).toBe('completed')
  },
  60_000,
)

const admit = async (body: object = {}) =>
  post('/registry/agents/greeter/admit', await gateway.operator(), body)
const address = () => gateway.gateway.addresses.public

async function startForeign(script: ForeignScript, more: object = {}): Promise<ForeignAgent> {
  const agent = await startForeignAgent(script)
  agents.push(agent)
  agent.card = cardOf(agent.url, more)
  return agent
}

async function post(route: string, token: string, body: object) {
  const response = await fetch(`${address()}${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const json: unknown = await response.json()
  return { status: response.status, json }
}
