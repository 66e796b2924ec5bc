import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeDid } from '@parley/kit/did/did'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { makeLog } from '@parley/kit/process/log'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import {
  type Credentials,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from './oauth/testing.ts'
import { FakeAgent } from './testing.ts'

// A real OAuth server in front of the gateway, which knows it by OAUTH_ISSUER only, with two supervised agents.
const stack = new AsyncDisposableStack()
let provider: TestIdentityProvider
let gateway: GatewayApp
let alice: Credentials
let root: Credentials
const key = keyPairFromSeed(randomBytes(32))
const did = makeDid({ author: 'alice@example.com', name: 'caller', publicKey: key.publicKey })

const client = (clientId: string, more: object = {}) =>
  provider.provider.ensureClient({
    clientId,
    clientName: clientId,
    scope: 'agent:read agent:write',
    ...more,
  })

beforeAll(async () => {
  provider = stack.use(await startIdentityProvider(stack.use(await temporaryFolder())))
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-external-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const define = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
  const handlers = {
    echo: '({ text }) => text',
    // \`first\` calls \`middle\`, which waits as long as the message states and then calls \`last\`.
    first: `async ({ agents, text }) => (await agents.call('middle', text)).text`,
    middle: `async ({ agents, text, signal }) => {
      const begun = await agents.call('last', '0')
      await new Promise((resolve, reject) => {
        setTimeout(resolve, Number(text))
        signal.addEventListener('abort', () => reject(signal.reason))
      })
      return begun.text + '; ' + (await agents.call('last', '1')).text
    }`,
    last: `({ caller, onBehalfOf, text }) => text + ' for ' + onBehalfOf.id + ' by ' + caller.id`,
    loop: `async ({ agents }) => agents.call('loop', 'again').then(
      ({ text }) => 'called: ' + text, (error) => error.name)`,
    best: `async ({ agents }) => (await agents.best('agent echo')).text`,
  }
  const environment: Record<string, string> = {}
  for (const [name, handle] of Object.entries(handlers)) {
    await mkdir(path.join(folder, 'agents', name), { recursive: true })
    await writeFile(
      path.join(folder, 'agents', name, 'agent.js'),
      `import { defineAgent } from ${JSON.stringify(define)}
       export default defineAgent({ name: '${name}', description: 'Agent ${name}', handle: ${handle},
         // A price of 0 requires no payment, but gives the agent a ledger.
         executionCost: { amount: '0', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', network: 'eip155:84532',
           payTo: '0x000000000000000000000000000000000000dEaD', extra: { name: 'USDC', version: '2' } },
         skills: [{ id: '${name}', name: '${name}', description: 'Agent ${name}' }] })`,
    )
    const { clientId, clientSecret } = await client(name, { introspection: true })
    environment[`${name.toUpperCase()}_OAUTH_CLIENT_ID`] = clientId
    environment[`${name.toUpperCase()}_OAUTH_CLIENT_SECRET`] = clientSecret
  }
  const own = await client('gateway', { introspection: true })
  alice = await client(did, { publicKey: key.publicKeyBase58 })
  root = await client('root', { scope: 'agent:read agent:write agent:admin' })
  gateway = stack.use(
    await startGatewayApp({
      settings: gatewayConfig({
        PATH: process.env['PATH'],
        HOME: folder,
        PORT: '0',
        LOG_LEVEL: 'silent',
        DATA_DIR: path.join(folder, 'data'),
        OAUTH_ISSUER: provider.provider.issuer,
        OAUTH_CLIENT_ID: own.clientId,
        OAUTH_CLIENT_SECRET: own.clientSecret,
        ...environment,
      }),
      log: makeLog({ level: 'silent', name: 'test' }),
      agentsDir: path.join(folder, 'agents'),
    }),
  )
  await gateway.supervisor?.settled()
}, 60_000)
afterAll(() => stack.disposeAsync())

interface Reply {
  status: number
  result?: {
    id: string
    status: { state: string }
    artifacts?: { parts: { text?: string }[] }[]
    metadata?: { children?: { task_id: string }[] }
  }
  error?: { code: number; message: string; data?: object }
}

async function rpc(
  url: string,
  token: string,
  method: string,
  params: object,
  headers: object = {},
): Promise<Reply> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method, params })
  return send(url, token, body, headers)
}
async function send(url: string, token: string, body: string, headers: object = {}): Promise<Reply> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    body,
  })
  return { status: response.status, ...((await response.json()) as object) }
}
const at = (slug: string) => `${gateway.addresses.public}/agents/${slug}/`
const hello = (text = 'hello') => ({
  message: {
    role: 'user',
    messageId: crypto.randomUUID(),
    parts: [{ kind: 'text', text }],
  },
  configuration: { blocking: true },
})
const tokenOf = (as: Credentials, form: Record<string, string> = {}) => provider.token(as, form)

/** Sends a message and returns the ended task. */
async function task(slug: string, token: string, text?: string): Promise<NonNullable<Reply['result']>> {
  const sent = await rpc(at(slug), token, 'message/send', hello(text))
  const id = sent.result?.id ?? ''
  let found: Reply = sent
  await expect
    .poll(async () => {
      found = await rpc(at(slug), token, 'tasks/get', { id })
      return found.result?.status.state ?? found.error
    })
    .toBeOneOf(['completed', 'failed'])
  expect(found.result?.status).toMatchObject({ state: 'completed' })
  if (found.result === undefined) throw new Error('no task')
  return found.result
}

test('a caller uses a supervised agent, which verifies the gateway’s statement and sees the caller as owner', async () => {
  const token = await tokenOf(alice)
  const { id } = await task('echo', token)
  // The owner is the same if the caller sends its token directly.
  const agentUrl = gateway.registry.bySlug('echo')?.url ?? ''
  expect((await rpc(agentUrl, await tokenOf(alice), 'tasks/get', { id })).status).toBe(200)
  const bob = await tokenOf(await client('bob'))
  expect((await rpc(at('echo'), bob, 'tasks/get', { id })).error?.code).toBe(-32001)
})

test('POST / reaches the agent as well', async () => {
  const sent = await rpc(
    `${gateway.addresses.public}/`,
    await tokenOf(alice),
    'message/send',
    hello('agent echo'),
  )
  expect(sent.status).toBe(200)
})

test('a signed request is verified with the caller’s key', async () => {
  const token = await tokenOf(alice)
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: hello() })
  expect((await send(at('echo'), token, body, signRequest({ did, key, body }))).status).toBe(200)
  const other = keyPairFromSeed(randomBytes(32))
  const forged = await send(at('echo'), token, body, signRequest({ did, key: other, body }))
  expect(forged).toMatchObject({ status: 403, error: { data: { reason: 'crypto_mismatch' } } })
})

test('a revoked token is refused at the next request', async () => {
  const token = await tokenOf(alice)
  const { id } = await task('echo', token)
  await provider.post('/oauth2/revoke', { token }, alice)
  expect(await rpc(at('echo'), token, 'tasks/get', { id })).toMatchObject({
    status: 401,
    error: { code: -32010 },
  })
})

test('what an agent receives is a statement for this agent, which no other agent, the gateway and the provider accept', async () => {
  const spy = new FakeAgent()
  await spy.listen()
  stack.defer(() => spy.stop())
  const url = `http://127.0.0.1:${spy.port}`
  await gateway.registry.register({
    name: 'spy',
    description: 'Records',
    url,
    card: { name: 'spy', description: 'Records' },
    skills: [],
    owner: 'spy',
    origin: 'supervised',
    verified: true,
    admitted: true,
  })
  const token = await tokenOf(alice)
  await rpc(at('spy'), token, 'message/send', hello())
  const received = spy.calls.at(-1)?.headers.authorization?.replace('Bearer ', '') ?? ''
  expect(received).not.toContain(token)
  expect(decodeJwt(received)).toMatchObject({
    iss: gateway.addresses.public,
    aud: url,
    client_id: did,
    act: { sub: gateway.addresses.public },
  })
  const agentUrl = gateway.registry.bySlug('echo')?.url ?? ''
  for (const where of [agentUrl, at('echo'), at('spy'), `${gateway.addresses.public}/`])
    expect(await rpc(where, received, 'message/send', hello())).toMatchObject({
      status: 401,
      error: { code: -32010 },
    })
  const { body } = await provider.post('/oauth2/introspect', { token: received }, alice)
  expect(body['active'] ?? body['error']).toBeOneOf([false, 'unsupported_token_type'])
})

test('an operator’s token reaches no agent, except as access to the ledger', async () => {
  const token = await tokenOf(root, { scope: 'agent:read agent:write agent:admin' })
  expect(await rpc(at('echo'), token, 'message/send', hello())).toMatchObject({
    status: 403,
    error: { data: { reason: 'operator_token' } },
  })
  const ledger = await fetch(`${at('echo')}payments`, { headers: { authorization: `Bearer ${token}` } })
  expect(ledger.status).toBe(200)
  const caller = await fetch(`${at('echo')}payments`, {
    headers: { authorization: `Bearer ${await tokenOf(alice)}` },
  })
  expect(caller.status).toBe(403)
})

describe('an agent calls other agents for the caller', () => {
  /** Sends a message, and waits until the first agent of the chain has a child, which has a child, too. */
  const startChain = async (token: string, text: string) => {
    const sent = await rpc(at('first'), token, 'message/send', { ...hello(text), configuration: {} })
    const first = sent.result?.id ?? ''
    const childOf = async (slug: string, id: string) => {
      const { result } = await rpc(at(slug), token, 'tasks/get', { id })
      return result?.metadata?.children?.[0]?.task_id ?? ''
    }
    const found = { first, middle: '', last: '' }
    await expect
      .poll(async () => {
        found.middle = await childOf('first', first)
        found.last = found.middle === '' ? '' : await childOf('middle', found.middle)
        const { result } = await rpc(at('last'), token, 'tasks/get', { id: found.last })
        return result?.status.state
      }, slow)
      .toBe('completed')
    return found
  }
  const slow = { timeout: 15_000 }
  const stateOf = async (slug: string, id: string, token: string) =>
    (await rpc(at(slug), token, 'tasks/get', { id })).result?.status.state
  const reasonOf = async (slug: string, id: string, token: string) =>
    JSON.stringify((await rpc(at(slug), token, 'tasks/get', { id })).result?.status)

  test('each agent of a chain sees its caller and the client', async () => {
    const { artifacts } = await task('first', await tokenOf(alice), '10')
    expect(artifacts?.[0]?.parts[0]?.text).toBe(`0 for ${did} by middle; 1 for ${did} by middle`)
  })

  test('the gateway chooses an agent', async () => {
    const { artifacts } = await task('best', await tokenOf(alice))
    expect(artifacts?.[0]?.parts[0]?.text).toBe('agent echo')
  })

  test('an agent that already acts for the caller cannot act again', async () => {
    const { artifacts } = await task('loop', await tokenOf(alice))
    expect(artifacts?.[0]?.parts[0]?.text).toBe('called: CallLoopError')
  })

  test('the cancellation of the first task cancels the chain', async () => {
    const token = await tokenOf(alice)
    const { first, middle } = await startChain(token, '600000')
    await rpc(at('first'), token, 'tasks/cancel', { id: first })
    await expect
      .poll(() => Promise.all([stateOf('first', first, token), stateOf('middle', middle, token)]), slow)
      .toEqual(['canceled', 'canceled'])
  })

  test('a token that is revoked in the middle ends the chain at its next step', async () => {
    const token = await tokenOf(alice)
    const { first, middle } = await startChain(token, '4000')
    await provider.post('/oauth2/revoke', { token }, alice)
    const fresh = await tokenOf(alice)
    await expect.poll(() => stateOf('middle', middle, fresh), slow).toBe('failed')
    expect(await reasonOf('middle', middle, fresh)).toContain('may no longer call other agents')
    await expect.poll(() => stateOf('first', first, fresh), slow).toBe('failed')
  })
})

test('the gateway publishes the public keys of its statements', async () => {
  const response = await fetch(`${gateway.addresses.public}/.well-known/jwks.json`)
  expect(response.headers.get('content-type')).toContain('application/jwk-set+json')
  expect(await response.json()).toEqual({
    issuer: gateway.addresses.public,
    keys: [expect.objectContaining({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' })],
  })
})
