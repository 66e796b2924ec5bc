import { type TestAgent, testAgent } from '@parley/agent/testing'
import { raw } from '@parley/tools/testing/raw-http'
import { expect, test, vi } from 'vitest'
import {
  bearer,
  embeddedOAuth,
  gateway,
  gatewayForEachTest,
  identityProvider,
  operatorClient,
  restart,
} from '../testing.ts'

gatewayForEachTest({ OPERATOR_READS_TEXTS: 'no' })

const address = () => gateway().addresses.public

async function keys() {
  const response = await fetch(`${address()}/.well-known/operator-jwks.json`)
  return { status: response.status, body: (await response.json()) as { issuer: string; keys: object[] } }
}

test('the keys of operator statements are published with an external and with the embedded OAuth server', async () => {
  const external = await keys()
  expect(external).toMatchObject({ status: 200, body: { issuer: address() } })
  expect(external.body.keys).toEqual([
    { kty: 'OKP', crv: 'Ed25519', use: 'sig', alg: 'EdDSA', kid: expect.any(String), x: expect.any(String) },
  ])
  await restart(embeddedOAuth)
  const embedded = await keys()
  expect(embedded.body.keys).toEqual(external.body.keys)
  // The embedded server signs no statements about callers, which agents read from this answer.
  const others = await fetch(`${address()}/.well-known/jwks.json`)
  expect([others.status, await others.json()]).toMatchObject([
    404,
    { error: { data: { reason: 'statement_keys' } } },
  ])
})

/** Starts a real agent that has joined the gateway. */
async function joinedAgent(): Promise<TestAgent> {
  const agent = await testAgent(
    { handle: ({ text, ask }) => (text === 'question' ? ask('Which city?') : 'done') },
    { store: 'memory', env: { GATEWAY_URL: address() }, identityProvider: identityProvider() },
  )
  await gateway().registry.register({
    name: 'real',
    description: 'A real agent',
    url: agent.url,
    did: agent.did,
    card: { name: 'real', description: 'A real agent' },
    skills: [],
    owner: agent.did,
    origin: 'supervised',
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
  })
  return agent
}

const get = (path: string, authorization: string, method = 'GET') =>
  raw({ url: address() }, { path, method, headers: { authorization } })

test('the gateway reads a real agent for an operator and for the owner of a task, and cancels', async () => {
  await using agent = await joinedAgent()
  const alice = agent.caller('alice')
  const { id } = await alice.sendAndWait('question')
  const root = bearer('root', 'agent:admin')
  const { json } = await get('/operator/tasks', root)
  expect(json).toMatchObject({
    tasks: [
      { agent: 'real', task_id: id, owner: 'alice', state: 'input-required', text: null, reason: null },
    ],
    unread: [],
  })
  const own = await get('/operator/tasks', bearer('alice'))
  expect(own.json.tasks).toMatchObject([{ task_id: id, text: 'question', reason: 'Which city?' }])
  expect((await get('/operator/tasks', bearer('bob'))).json.tasks).toEqual([])
  expect((await get(`/operator/tasks/${id}`, root)).json).toMatchObject({ task: null, runs: [{}] })
  // No token of a caller works at the agent, and the gateway does not forward its routes.
  expect(
    (await raw(agent, { path: '/operator/tasks', method: 'GET', headers: { authorization: root } })).status,
  ).toBe(401)
  expect((await get('/agents/real/operator/tasks', root)).status).toBe(404)
  expect((await get(`/operator/tasks/${id}/cancel`, root, 'POST')).json).toMatchObject({ state: 'canceled' })
  await vi.waitFor(async () => expect((await alice.get(id)).status.state).toBe('canceled'))
})

test('the same holds with the embedded OAuth server', async () => {
  await restart({ ...embeddedOAuth, OPERATOR_READS_TEXTS: 'yes' })
  await using agent = await joinedAgent()
  const { id } = await agent.caller('alice').sendAndWait('question')
  const token = await (await operatorClient()).token({ scope: 'agent:admin' })
  const { json } = await get('/operator/tasks', `Bearer ${token}`)
  expect(json.tasks).toMatchObject([{ agent: 'real', task_id: id, text: 'question' }])
})
