import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestAgent, testAgent } from '@parley/agent/testing'
import { agentIdentity } from '@parley/kit/did/identity'
import { readSignature, verifySigned } from '@parley/kit/did/signature'
import { type ScriptedAnswer, type ScriptedCall, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { AgentClient, ClientToken, signedFetch } from './signed-fetch.ts'

let folder: string
let agent: TestAgent
let identity: Awaited<ReturnType<typeof agentIdentity>>
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'parley-signed-fetch-'))
  identity = await agentIdentity('ada@example.com', path.join(folder, 'agent.key.json'))
  agent = await testAgent({ handle: ({ caller }) => ({ ...caller }), signatures: 'required' })
  agent.identityProvider.clients.set(identity.did, { public_key: identity.key.publicKeyBase58 })
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

let given: string[]
beforeEach(() => (given = []))

/** A token endpoint and a token source that uses it. */
async function tokens(expires_in = 3600) {
  const answer = (): ScriptedAnswer => {
    const token = agent.identityProvider.issue(identity.did)
    given.push(token)
    return { status: 200, body: JSON.stringify({ access_token: token, expires_in }) }
  }
  const server = await scriptedAgent({ 'POST /token': answer })
  const client = { clientId: identity.did, clientSecret: 'secret', scope: 'agent:read agent:write' }
  const source = new ClientToken({ tokenUrl: `${server.url}/token`, ...client })
  return { source, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

test('a signing client can call an agent that requires signatures, even with non-ASCII text', async () => {
  await using from = await tokens()
  const client = new AgentClient({ url: agent.url, fetch: signedFetch(identity, from.source) })
  const task = await client.wait((await client.send('Grüße 😀')).id)
  expect(task.artifacts[0]?.parts[0]).toMatchObject({
    data: { id: identity.did, did: identity.did, signed: true },
  })
  expect(given).toHaveLength(1)
})

test('a request that is signed with an audience is rejected by other servers', async () => {
  await using from = await tokens()
  await using other = await testAgent(
    { handle: () => 'done', signatures: 'required' },
    { identityProvider: agent.identityProvider },
  )
  const bound = signedFetch(identity, from.source, { audience: agent.app.services.did })
  const task = await new AgentClient({ url: agent.url, fetch: bound }).send('hello')
  expect(task.status.state).toBe('submitted')
  await expect(new AgentClient({ url: other.url, fetch: bound }).send('hello')).rejects.toMatchObject({
    code: -32012,
    data: { reason: 'audience_mismatch' },
  })
})

test('64 concurrent requests fetch a single token', async () => {
  await using from = await tokens()
  const client = new AgentClient({ url: agent.url, fetch: signedFetch(identity, from.source) })
  await Promise.all(Array.from({ length: 64 }, () => client.list()))
  expect(given).toHaveLength(1)
})

test('the client renews a rejected token once', async () => {
  await using from = await tokens()
  const fetched = signedFetch(identity, from.source)
  const client = new AgentClient({ url: agent.url, fetch: fetched })
  await client.list()
  agent.identityProvider.revoke(given[0] ?? '')
  await client.send('again')
  expect(given).toHaveLength(2)

  await using refusing = await scriptedAgent({ 'GET /': () => ({ status: 401, body: '' }) })
  expect((await fetched(`${refusing.url}/`)).status).toBe(401)
  expect(refusing.calls).toHaveLength(2)
})

test('a late 401 for the previous token does not drop the new one', async () => {
  await using from = await tokens()
  const late = Promise.withResolvers<void>()
  const answer = async ({ path: asked, headers }: ScriptedCall): Promise<ScriptedAnswer> => {
    if (headers.authorization !== `Bearer ${given[0]}`) return { status: 200, body: 'ok' }
    if (asked.endsWith('late')) await late.promise
    return { status: 401, body: '' }
  }
  await using server = await scriptedAgent({ 'GET /': answer })
  const fetched = signedFetch(identity, from.source)
  const second = fetched(`${server.url}/?late`)
  await expect.poll(() => server.calls.length).toBe(1)
  expect((await fetched(`${server.url}/`)).status).toBe(200)
  late.resolve()
  expect((await second).status).toBe(200)
  expect(given).toHaveLength(2)
})

test('a body that is sent twice within a second is signed differently, so that it is not a replay', async () => {
  await using from = await tokens()
  const fetched = signedFetch(identity, from.source)
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: '1',
    method: 'contexts/clear',
    params: { context_id: crypto.randomUUID() },
  })
  const headers = { 'content-type': 'application/json' }
  for (let i = 0; i < 3; i += 1) {
    const answer = await fetched(agent.url, {
      method: 'POST',
      headers,
      body: i === 1 ? Buffer.from(body) : body,
    })
    expect(await answer.json()).toMatchObject({ error: { code: -32020 } })
  }
})

test('a GET request signs the empty string', async () => {
  await using from = await tokens()
  await using server = await scriptedAgent({ 'GET /x': () => ({ status: 200, body: 'ok' }) })
  await signedFetch(identity, from.source)(`${server.url}/x`, {
    headers: { 'x-did': 'mine', 'x-more': 'kept' },
  })
  const headers = server.calls[0]?.headers ?? {}
  expect(headers).toMatchObject({
    'x-did': identity.did,
    'x-more': 'kept',
    authorization: `Bearer ${given[0]}`,
  })
  const signed = { did: identity.did, body: '', timestamp: Number(headers['x-did-timestamp']) }
  const signature = readSignature(String(headers['x-did-signature'])) ?? new Uint8Array()
  expect(verifySigned(signed, signature, identity.key.publicKey)).toBe(true)
})

test('the client returns a redirect and rejects a body that is not UTF-8', async () => {
  await using from = await tokens()
  const fetched = signedFetch(identity, from.source)
  await using server = await scriptedAgent({ 'GET /': () => ({ status: 302, body: '' }) })
  expect((await fetched(`${server.url}/`)).status).toBe(302)
  await expect(fetched(server.url, { method: 'POST', body: Buffer.from([0xff]) })).rejects.toThrow(TypeError)
})
