import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { AgentClient } from '@parley/client/internal/client'
import { type ForeignAgent, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { RegistrationGateway } from './registration/testing.ts'

/** The relay with an OAuth server that is not that of the gateway. */

let provider: TestIdentityProvider
let foreign: ForeignAgent
const gateways: RegistrationGateway[] = []

beforeAll(async () => {
  provider = await TestIdentityProvider.start()
  provider.metadata = { token_endpoint: `${provider.url}/token`, introspection_endpoint: provider.url }
  foreign = await startForeignAgent((_request, reply) =>
    reply.result({ message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'Hi' }] } }),
  )
  foreign.card = {
    name: 'Greeter',
    description: 'Greets people',
    version: '1.0.0',
    supportedInterfaces: [{ url: foreign.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'greet', name: 'Greet', description: 'Greets people', tags: [] }],
  }
})
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway[Symbol.asyncDispose]()
})
afterAll(async () => {
  await foreign?.[Symbol.asyncDispose]()
  await provider?.[Symbol.asyncDispose]()
})

test('the relay works with a client of its own', async () => {
  const { address } = await start({ RELAY_OAUTH_CLIENT_ID: 'relay', RELAY_OAUTH_CLIENT_SECRET: 's' })
  const caller = new AgentClient({ url: `${address}/agents/greeter/`, token: provider.issue('alice') })
  const { id } = await caller.send('hello')
  const task = await caller.wait(id, { signal: AbortSignal.timeout(30_000) })
  expect(task.status).toMatchObject({ state: 'completed', message: { parts: [{ text: 'Hi' }] } })
})

test('without a client, a log line names the settings', async () => {
  const { gateway } = await start({})
  await expect.poll(() => gateway.logged.join(''), { timeout: 10_000 }).toContain('RELAY_OAUTH_CLIENT_ID')
  expect(gateway.logged.join('')).not.toContain('_RELAY_OAUTH_CLIENT_ID')
})

async function start(env: Record<string, string>) {
  const gateway = await RegistrationGateway.open()
  gateways.push(gateway)
  const settings = {
    OAUTH_ISSUER: provider.url,
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_CLIENT_SECRET: 's',
    PATH: process.env['PATH'] ?? '',
    ...env,
  }
  await gateway.start(settings, {}, { agentsDir: path.join(gateway.folder, 'agents') })
  const address = gateway.gateway.addresses.public
  const operator = provider.issue('operator', { scope: 'agent:read agent:write agent:admin' })
  const post = (route: string, body: object) =>
    fetch(`${address}${route}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  expect((await post('/registry/agents', { url: foreign.url })).status).toBe(201)
  expect((await post('/registry/agents/greeter/admit', {})).status).toBe(200)
  return { gateway, address }
}
