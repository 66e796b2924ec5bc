import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { type CryptoKey, exportJWK, generateKeyPair } from 'jose'
import * as oauth from 'openid-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'

let folder: string
let gateway: GatewayApp
let origin: string
let agentUrl: string
/** A client that authenticates with a key. */
let config: oauth.Configuration
let privateKey: CryptoKey
let clientId: string

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-gateway-'))
  const agentFolder = path.join(folder, 'agents', 'echo')
  await mkdir(agentFolder, { recursive: true })
  const define = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
  await writeFile(
    path.join(agentFolder, 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(define)}
     export default defineAgent({ name: 'echo', description: 'Repeats', handle: ({ text }) => text,
       skills: [{ id: 'echo', name: 'Echo', description: 'Repeats' }] })`,
  )
  const DATA_DIR = path.join(folder, 'data')
  const home = { PATH: process.env['PATH'], HOME: folder, PORT: '0', LOG_LEVEL: 'silent', DATA_DIR }
  gateway = await startGatewayApp({
    settings: gatewayConfig(home),
    log: makeLog({ level: 'silent', name: 'test' }),
    agentsDir: path.join(folder, 'agents'),
  })
  await gateway.supervisor?.settled()
  origin = gateway.addresses.public
  agentUrl = gateway.registry.bySlug('echo')?.url ?? ''
  const pair = await generateKeyPair('ES256', { extractable: true })
  privateKey = pair.privateKey
  clientId = await registered({ keys: [await exportJWK(pair.publicKey)] })
  const authentication = oauth.PrivateKeyJwt(privateKey)
  config = await oauth.discovery(new URL(origin), clientId, undefined, authentication, {
    algorithm: 'oauth2',
    execute: [oauth.allowInsecureRequests],
  })
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function registered(jwks: object): Promise<string> {
  const initial = await readFile(path.join(folder, 'data', 'oauth', 'initial-access-token'), 'utf8')
  const response = await fetch(`${origin}/oauth2/register`, {
    method: 'POST',
    headers: { authorization: `Bearer ${initial.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'bound',
      grant_types: ['client_credentials'],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks,
    }),
  })
  return ((await response.json()) as { client_id: string }).client_id
}

const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const message = (messageId = crypto.randomUUID()) =>
  rpc('message/send', {
    message: { role: 'user', messageId, parts: [{ kind: 'text', text: 'Repeats echo' }] },
  })
const json = new Headers({ 'content-type': 'application/json' })

async function boundToken() {
  const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair())
  const { access_token: token } = await oauth.clientCredentialsGrant(
    config,
    { scope: 'agent:read agent:write' },
    { DPoP },
  )
  return { token, DPoP }
}

/** The addresses of the agent and of the gateway, which take the same requests. */
const servers = () => [`${origin}/agents/echo/`, `${origin}/`, `${agentUrl}/`]

test('openid-client calls an agent with DPoP through the gateway, by name or not, and directly', async () => {
  const { token, DPoP } = await boundToken()
  for (const address of servers()) {
    const url = new URL(address)
    const sent = await oauth.fetchProtectedResource(config, token, url, 'POST', message(), json, { DPoP })
    const { result } = (await sent.json()) as { result: { id: string } }
    const get = rpc('tasks/get', { task_id: result.id })
    const got = await oauth.fetchProtectedResource(config, token, url, 'POST', get, json, { DPoP })
    expect([address, sent.status, got.status]).toEqual([address, 200, 200])
  }
})

test('a bound token is accepted once for a call of A2A that names its agent at the address of the gateway', async () => {
  const { token, DPoP } = await boundToken()
  const params = { message: { role: 'ROLE_USER', messageId: 'one', parts: [{ text: 'Repeats echo' }] } }
  const sent = [
    { path: '/a2a/v1', body: rpc('SendMessage', { ...params, tenant: 'echo' }) },
    { path: '/a2a/v1/echo/message:send', body: JSON.stringify(params) },
    { path: '/agents/echo/message:send', body: JSON.stringify(params) },
    { path: '/message:send', body: JSON.stringify(params) },
  ]
  for (const { path: at, body } of sent) {
    const url = new URL(at, origin)
    const answer = await oauth.fetchProtectedResource(config, token, url, 'POST', body, json, { DPoP })
    expect([at, answer.status, await answer.text()]).toEqual([
      at,
      200,
      expect.stringContaining('TASK_STATE_COMPLETED'),
    ])
  }
})

test('a bound token without a proof of its key, or with a used one, is refused at every address', async () => {
  const { token, DPoP } = await boundToken()
  const other = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair())
  for (const address of servers()) {
    const proofs: string[] = []
    const recorded: oauth.CustomFetch = (url, options) => {
      proofs.push(new Headers(options.headers).get('dpop') ?? '')
      return fetch(url, options as RequestInit)
    }
    const recording = await oauth.discovery(new URL(origin), clientId, undefined, oauth.None(), {
      algorithm: 'oauth2',
      execute: [oauth.allowInsecureRequests],
      [oauth.customFetch]: recorded,
    })
    proofs.length = 0
    const url = new URL(address)
    await oauth.fetchProtectedResource(recording, token, url, 'POST', message(), json, { DPoP })
    const [used = ''] = proofs
    const send = async (headers: Record<string, string>) => {
      const init = { method: 'POST', headers: { ...Object.fromEntries(json), ...headers }, body: message() }
      const response = await fetch(address, init)
      const { error } = (await response.json()) as { error: { code: number; data: { reason: string } } }
      return [response.status, error.code, error.data.reason]
    }
    expect(await send({ authorization: `DPoP ${token}`, dpop: used })).toEqual([
      401,
      -32010,
      'proof_replayed',
    ])
    expect(await send({ authorization: `DPoP ${token}` })).toEqual([401, -32010, 'proof_missing'])
    expect(await send({ authorization: `Bearer ${token}` })).toEqual([401, -32010, 'proof_missing'])
    const stolen = oauth.fetchProtectedResource(config, token, url, 'POST', message(), json, { DPoP: other })
    await expect(stolen).rejects.toMatchObject({ cause: [{ parameters: { error: 'invalid_dpop_proof' } }] })
  }
})

test('a proof for the gateway is refused by the agent, and the other way round', async () => {
  const { token, DPoP } = await boundToken()
  const proofs: string[] = []
  const recording = await oauth.discovery(new URL(origin), clientId, undefined, oauth.None(), {
    algorithm: 'oauth2',
    execute: [oauth.allowInsecureRequests],
    [oauth.customFetch]: async (url, options) => {
      const proof = new Headers(options.headers).get('dpop')
      if (proof === null) return fetch(url, options as RequestInit)
      proofs.push(proof)
      return Response.json({})
    },
  })
  const [named = '', , direct = ''] = servers()
  for (const [signed, sent] of [
    [named, direct],
    [direct, named],
  ] as const) {
    await oauth.fetchProtectedResource(recording, token, new URL(signed), 'POST', message(), json, { DPoP })
    const headers = { 'content-type': 'application/json', authorization: `DPoP ${token}` }
    const dpop = proofs.at(-1) ?? ''
    const response = await fetch(sent, { method: 'POST', headers: { ...headers, dpop }, body: message() })
    expect(await response.json()).toMatchObject({ error: { data: { reason: 'proof_url_mismatch' } } })
  }
})

test('a long-lived key is a bearer token for all agents of the gateway, until it is revoked', async () => {
  const { access_token: token } = await oauth.clientCredentialsGrant(config, {
    scope: 'agent:read agent:write',
    resource: origin,
  })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const made = await fetch(`${origin}/client-keys`, { method: 'POST', headers, body: '{}' })
  const { key, details } = (await made.json()) as { key: string; details: { id: string } }
  const use = (address: string) =>
    fetch(address, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${key}` },
      body: message(),
    })
  const statuses = () => Promise.all(servers().map(async (address) => [address, (await use(address)).status]))
  const isGateway = (address: string) => address.startsWith(origin)
  // A client makes keys for the gateway only, which exchanges them.
  expect(await statuses()).toEqual(servers().map((address) => [address, isGateway(address) ? 200 : 401]))
  await fetch(`${origin}/client-keys/${details.id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${token}` },
  })
  expect(await statuses()).toEqual(servers().map((address) => [address, 401]))
})

test('the decisions of an operator about a client hold at the gateway and at the agent', async () => {
  const { access_token: token } = await oauth.clientCredentialsGrant(config, {
    scope: 'agent:read agent:write',
  })
  const file = await readFile(path.join(folder, 'data', 'oauth', 'operator-client.json'), 'utf8')
  const { token_url: tokenUrl, ...operator } = JSON.parse(file) as Record<string, string>
  const form = new URLSearchParams({ ...operator, grant_type: 'client_credentials', scope: 'agent:admin' })
  const issued = await fetch(tokenUrl ?? '', { method: 'POST', body: form })
  const { access_token: admin } = (await issued.json()) as { access_token: string }
  const decide = async (action: string, decision: object = {}) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${admin}` }
    const body = JSON.stringify({ id: clientId, ...decision })
    expect((await fetch(`${origin}/clients/${action}`, { method: 'POST', headers, body })).status).toBe(200)
  }
  const send = async (address: string, body = message()) =>
    (
      await fetch(address, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body,
      })
    ).status
  const all = async (body?: () => string) => Promise.all(servers().map((address) => send(address, body?.())))
  expect(await all()).toEqual([200, 200, 200])
  await decide('limit', { scope: 'agent:read' })
  expect(await all()).toEqual([403, 403, 403])
  expect(await all(() => rpc('tasks/list', {}))).toEqual([200, 200, 200])
  await decide('limit', { resources: ['https://elsewhere.example'] })
  expect(await all()).toEqual([401, 401, 401])
  await decide('limit')
  expect(await all()).toEqual([200, 200, 200])
  await decide('revoke')
  expect(await all()).toEqual([401, 401, 401])
})
