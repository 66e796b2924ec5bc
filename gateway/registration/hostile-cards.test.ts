import { generateKeyPairSync, sign } from 'node:crypto'
import path from 'node:path'
import { parley } from '@parley/e2e/harness/parley-process'
import { type ForeignAgent, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { RegistrationGateway } from './testing.ts'

/** Cards that foreign agents could send to harm the gateway or its users. */

let gateway: RegistrationGateway
const agents: ForeignAgent[] = []

beforeAll(async () => {
  gateway = await RegistrationGateway.open()
  await gateway.start({}, {}, { agentsDir: path.join(gateway.folder, 'agents') })
})
afterAll(() => gateway?.[Symbol.asyncDispose]())
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent[Symbol.asyncDispose]()
})

const nested = (levels: number) => {
  let value: object = {}
  for (let i = 0; i < levels; i += 1) value = { a: value }
  return value
}
const skill = (i: number) => ({ id: `s${i}`, name: 's', description: 's', tags: [] })
const at = (url: string) => ({
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
})

test.each<[string, object, string]>([
  ['5,000 skills', { skills: Array.from({ length: 5000 }, (_item, i) => skill(i)) }, 'larger than'],
  ['1,001 short skills', { skills: Array.from({ length: 1001 }, (_item, i) => ({ id: `${i}` })) }, 'skills'],
  ['5 MB', { extra: 'x'.repeat(5_000_000) }, 'larger than'],
  ['2,000 levels', { extra: nested(2000) }, 'not a JSON object'],
  [
    'an interface with a password',
    at('http://me:SECRET@127.0.0.1:1/'),
    'must not contain a user name or password',
  ],
  ['an interface in a private network', at('http://192.168.0.1/'), 'not on the public internet'],
  ['an interface of the cloud', at('http://169.254.169.254/latest/'), 'not on the public internet'],
  ['an interface with another scheme', at('file:///etc/passwd'), 'must begin with http:// or https://'],
  ['a script as its interface', at('javascript:alert(1)'), 'must begin with http:// or https://'],
  ['an interface with control characters', at('http://127.0.0.1\u0000/'), 'control characters'],
])('a card with %s is refused with the reason', async (_what, more, reason) => {
  const { status, text } = await register((await foreign(more)).url)
  expect(status).toBe(400)
  expect(text).toContain(reason)
  expect(text.length).toBeLessThan(2000)
  expect(text).not.toContain('SECRET')
})

test('a redirect of a card is not followed', async () => {
  const target = await foreign()
  const agent = await foreign()
  agent.card = undefined
  agent.redirect = `${target.url}/.well-known/agent-card.json`
  const { status, text } = await register(agent.url)
  expect(status).toBe(400)
  expect(text).toContain('Redirects are not followed')
  expect(target.cardRequests).toBe(0)
})

test('control characters, escape sequences and HTML of a card do not reach the terminal', async () => {
  const hostile = '\u001b[2J\u001b]0;owned\u0007<b>\u202eEvil\u009b'
  const agent = await foreign({
    name: hostile,
    description: hostile,
    version: hostile,
    skills: [{ id: hostile, name: hostile, description: hostile, tags: [hostile] }],
  })
  const { status, json } = await register(agent.url)
  expect(status).toBe(201)
  expect(json).toMatchObject({ slug: expect.stringMatching(/^[a-z0-9-]+$/) })
  const { public: address } = gateway.gateway.addresses
  const env = {
    PATH: process.env['PATH'],
    HOME: gateway.folder,
    DATA_DIR: gateway.folder,
    PUBLIC_URL: address,
  }
  for (const args of [['agents'], ['check', agent.url]]) {
    const { stdout, stderr } = await parley(args, { cwd: gateway.folder, env })
    expect(stdout).toMatch(/evil|call/i)
    // oxlint-disable-next-line no-control-regex -- these characters must not occur
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
  }
})

test.each([
  ['did:web:10.0.0.1#key'],
  ['did:web:169.254.169.254:latest#key'],
  ['https://127.0.0.1:1/keys#key'],
])('of a card signature, neither `jku` is followed nor a foreign key (%s) resolved', async (kid) => {
  const keys = await foreign()
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const agent = await foreign()
  const encode = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64url')
  const jwk = pair.publicKey.export({ format: 'jwk' })
  const header = encode({ alg: 'ES256', kid, jku: `${keys.url}/.well-known/agent-card.json`, jwk })
  const input = Buffer.from(`${header}.${encode(cardOf(agent.url))}`)
  const signature = sign('sha256', input, { key: pair.privateKey, dsaEncoding: 'ieee-p1363' }).toString(
    'base64url',
  )
  agent.card = {
    ...cardOf(agent.url, { name: `Signed ${kid.length}` }),
    signatures: [{ protected: header, signature }],
  }
  const { status, json } = await register(agent.url)
  expect(status).toBe(201)
  expect(json).toMatchObject({
    verified: false,
    relay: { card_signature: { verified: false, reason: 'unknown_key' } },
  })
  expect(keys.cardRequests).toBe(0)
})

const cardOf = (url: string, more: object = {}) => ({
  name: 'Hostile',
  description: 'A card',
  version: '1.0.0',
  ...at(`${url}/rpc`),
  capabilities: {},
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [skill(1)],
  ...more,
})

async function foreign(more: object = {}): Promise<ForeignAgent> {
  const agent = await startForeignAgent((_, reply) => reply.error(-32_001, '\u001b[2JNo such task'))
  agents.push(agent)
  agent.card = cardOf(agent.url, more)
  return agent
}

async function register(url: string) {
  const response = await fetch(`${gateway.gateway.addresses.public}/registry/agents`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await gateway.carol()}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  })
  const text = await response.text()
  const json: unknown = JSON.parse(text)
  return { status: response.status, text, json }
}
