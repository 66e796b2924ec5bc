import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { AgentClient } from '@parley/client/internal/client'
import { ClientToken, signedFetch } from '@parley/client/internal/signed-fetch'
import { type DidDocument, verifyDocument } from '@parley/kit/did/document'
import { agentIdentity, type Identity } from '@parley/kit/did/identity'
import { verifyParts } from '@parley/kit/did/part-signature'
import { signRequest } from '@parley/kit/did/signature'
import { cardHash, verifyProof } from '@parley/kit/did/vouch'
import { expect } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import { Deployment } from './harness/deployment.ts'
import { parley } from './harness/parley-process.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

type Json = Record<string, unknown>
interface Client {
  client_id: string
  client_secret: string
}

let deployment: Deployment
let me: Identity
let client: Client
/** Documents saved for `parley verify --from`. */
const saved: Record<'gateway' | 'entry' | 'agent' | 'task', Json> = {
  gateway: {},
  entry: {},
  agent: {},
  task: {},
}

test.beforeAll(async ({ backends }) => {
  const made = await parley(['did', 'new', '--gateway', '--author', 'ada@example.com'], {
    cwd: path.resolve('e2e'),
  })
  deployment = await Deployment.start(backends, parseEnv(made.stdout) as Record<string, string>)
  me = await agentIdentity('caller', path.join(deployment.dataDir, 'caller.key.json'))
  client = await registerClient()
})
test.afterAll(() => deployment?.remove())

async function get(route: string): Promise<Json> {
  const response = await fetch(`${deployment.url}${route}`)
  expect(response.status, route).toBe(200)
  return (await response.json()) as Json
}

async function endpoint(name: string): Promise<string> {
  return (await get('/.well-known/oauth-authorization-server/oauth2'))[name] as string
}

/** Registers an OAuth client for our DID, with our key. */
async function registerClient(): Promise<Client> {
  const initial = readFileSync(path.join(deployment.dataDir, 'oauth', 'initial-access-token'), 'utf8').trim()
  const body = JSON.stringify({
    issuer: `${deployment.url}/oauth2`,
    client_id: me.did,
    client_name: 'caller',
    grant_types: ['client_credentials'],
    public_key: me.key.publicKeyBase58,
  })
  const response = await fetch(await endpoint('registration_endpoint'), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${initial}`,
      'content-type': 'application/json',
      ...signRequest({ ...me, body }),
    },
    body,
  })
  expect(response.status).toBe(201)
  return (await response.json()) as Client
}

async function tokens(): Promise<ClientToken> {
  return new ClientToken({
    tokenUrl: await endpoint('token_endpoint'),
    clientId: client.client_id,
    clientSecret: client.client_secret,
    scope: 'agent:read agent:write',
  })
}

/** Replaces one letter of base58 or base64url, which changes one byte. */
function flipped(text: string, at: number): string {
  return text.slice(0, at) + (text[at] === 'a' ? 'b' : 'a') + text.slice(at + 1)
}

const keyOf = (document: Json) =>
  (document as unknown as DidDocument).authentication[0]?.publicKeyBase58 ?? ''
const withFlippedKey = (document: Json): Json =>
  JSON.parse(JSON.stringify(document).replaceAll(keyOf(document), flipped(keyOf(document), 20))) as Json

test('the gateway’s document matches its DID, but not with one changed byte in the key', async () => {
  saved.gateway = await get('/.well-known/did.json')
  const did = saved.gateway['id'] as string
  expect(did).toMatch(/^did:parley:ada_at_example_com:gateway:/)
  expect(verifyDocument(saved.gateway, did)).toHaveLength(1)
  expect(() => verifyDocument(withFlippedKey(saved.gateway), did)).toThrow(
    /not derived from the first key|publicKeyBase58/,
  )
})

test('the gateway signs the proof of an entry, and one changed byte invalidates the signature', async () => {
  saved.entry = await get('/registry/agents/calculator')
  const [proof, document] = [saved.entry['proof'] as string, saved.gateway as unknown as DidDocument]
  expect(await verifyProof(proof, document)).toMatchObject({
    sub: saved.entry['did'],
    url: saved.entry['url'],
    card_hash: cardHash(saved.entry['card'] as never),
    verified: true,
  })
  for (const part of [0, 1, 2]) {
    const at = proof.split('.').slice(0, part).join('.').length + 12
    await expect(verifyProof(flipped(proof, at), document)).rejects.toThrow(
      /not signed by the gateway|not one of/,
    )
  }
})

test('the DID resolves to the agent’s document with the keys of the proof, and one changed byte invalidates it', async () => {
  const did = saved.entry['did'] as string
  saved.agent = await get(`/did/resolve?did=${encodeURIComponent(did)}`)
  expect(await get(`/agents/calculator/did/resolve?did=${encodeURIComponent(did)}`)).toEqual(saved.agent)
  const { keys } = await verifyProof(saved.entry['proof'] as string, saved.gateway as unknown as DidDocument)
  expect(verifyDocument(saved.agent, did)).toEqual(keys)
  expect(() => verifyDocument(withFlippedKey(saved.agent), did)).toThrow(
    /not derived from the first key|publicKeyBase58/,
  )
})

test('a signed request succeeds, but gets 403 crypto_mismatch with one changed byte in body or signature', async () => {
  const source = await tokens()
  const calls = new AgentClient({
    url: `${deployment.url}/agents/calculator`,
    fetch: signedFetch(me, source),
  })
  const task = await calls.send('6 * 7')
  saved.task = (await calls.wait(task.id, { signal: AbortSignal.timeout(150_000) })) as unknown as Json
  expect(JSON.stringify(saved.task['artifacts'])).toContain('42')
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/get', params: { id: task.id } })
  const signed = signRequest({ ...me, body })
  const outcome = async (sent: string, headers: Record<string, string>) => {
    const response = await fetch(`${deployment.url}/agents/calculator/`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await source.get()}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: sent,
    })
    const { error } = (await response.json()) as { error?: { code: number; data: Json } }
    return [response.status, error?.code, error?.data['reason']]
  }
  const mismatch = [403, -32012, 'crypto_mismatch']
  expect(await outcome(body, { ...signed })).toEqual([200, undefined, undefined])
  expect(await outcome(body.replace('"1"', '"2"'), { ...signed })).toEqual(mismatch)
  const other = flipped(signed['x-did-signature'], 30)
  expect(await outcome(body, { ...signed, 'x-did-signature': other })).toEqual(mismatch)
})

test('the agent signs the parts of its artifacts, and one changed byte invalidates a signature', () => {
  const keys = verifyDocument(saved.agent, saved.entry['did'] as string)
  const verdicts = (task: Json) => verifyParts(task as never, keys).map(({ verdict }) => verdict)
  expect(verdicts(saved.task).length).toBeGreaterThan(0)
  expect(new Set(verdicts(saved.task))).toEqual(new Set(['verified']))
  // Changes only the text of a part, because an id may also contain 42.
  const text = JSON.stringify(saved.task['artifacts']).replace(/(?<="text":"[^"]*)42/, '43')
  const changed = { ...saved.task, artifacts: JSON.parse(text) as unknown }
  expect(verdicts(changed)).toContain('crypto_mismatch')
})

test('parley verify gives the same results from files, without a server', async () => {
  const folder = deployment.dataDir
  const write = (name: keyof typeof saved, value: Json) =>
    writeFileSync(path.join(folder, `${name}.json`), JSON.stringify(value))
  for (const [name, value] of Object.entries(saved)) write(name as keyof typeof saved, value)
  const verified = () => parley(['verify', '--from', folder], { cwd: folder })
  const proof = saved.entry['proof'] as string
  const cases: [keyof typeof saved, Json, RegExp][] = [
    ['gateway', withFlippedKey(saved.gateway), /^NO .*gateway’s document is that of its DID: /m],
    [
      'entry',
      { ...saved.entry, proof: flipped(proof, proof.length - 20) },
      /^NO .*proof is signed by the gateway: /m,
    ],
    ['entry', { ...saved.entry, card: { name: 'Mallory' } }, /^NO .*proof is about this card: /m],
    ['agent', withFlippedKey(saved.agent), /^NO .*agent’s document is that of its DID/m],
    [
      'task',
      JSON.parse(JSON.stringify(saved.task).replaceAll('42', '43')) as Json,
      /^NO .*is signed by the agent: crypto_mismatch/m,
    ],
  ]
  const whole = await verified()
  expect(whole.stdout).not.toMatch(/^NO /m)
  expect(whole.code, whole.stdout).toBe(0)
  for (const [name, changed, reason] of cases) {
    write(name, changed)
    const { code, stdout } = await verified()
    expect(code, name).toBe(1)
    expect(stdout).toMatch(reason)
    write(name, saved[name])
  }
})

test('a revoked token is refused immediately', async () => {
  const token = await (await tokens()).get()
  const list = async () => {
    const response = await fetch(`${deployment.url}/agents/calculator/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":"1","method":"tasks/list"}',
    })
    return [response.status, ((await response.json()) as { error?: { code: number } }).error?.code]
  }
  expect(await list()).toEqual([200, undefined])
  const revoked = await fetch(await endpoint('revocation_endpoint'), {
    method: 'POST',
    body: new URLSearchParams({ token, client_id: client.client_id, client_secret: client.client_secret }),
  })
  expect(revoked.status).toBe(200)
  expect(await list()).toEqual([401, -32010])
})
