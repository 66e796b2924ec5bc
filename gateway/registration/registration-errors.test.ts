import { once } from 'node:events'
import net from 'node:net'
import { answerChallenge } from '@parley/kit/did/challenge'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, bob, RegistrationGateway, type ScriptedAgent } from './testing.ts'

let deployment: RegistrationGateway

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
})

afterEach(() => deployment[Symbol.asyncDispose]())

test.each<[string, ScriptedAgent, number, string]>([
  ['serves the document of another agent', { identity: alice, document: bob.document }, 400, 'did_document'],
  ['serves no document', { identity: alice, document: [] }, 400, 'not_json'],
  [
    'lists its own key under the DID of another agent',
    {
      identity: alice,
      document: JSON.parse(
        JSON.stringify(alice.document).replaceAll(alice.key.publicKeyBase58, bob.key.publicKeyBase58),
      ),
    },
    400,
    'did_document',
  ],
  ['does not hold the key of its DID', { identity: alice, challenge: bob }, 403, 'crypto_mismatch'],
  [
    'answers the challenge of another gateway',
    {
      identity: alice,
      challenge: (asked) =>
        answerChallenge({ ...asked, gateway: 'https://other.example' }, alice.did, alice.key),
    },
    403,
    'crypto_mismatch',
  ],
  [
    'relays the answer of another agent to its own challenge',
    {
      identity: alice,
      challenge: (asked) => answerChallenge({ ...asked, url: 'https://alice.example' }, alice.did, alice.key),
    },
    403,
    'crypto_mismatch',
  ],
  [
    'answers an old challenge',
    {
      identity: alice,
      challenge: (asked) => answerChallenge({ ...asked, nonce: 'A'.repeat(43) }, alice.did, alice.key),
    },
    403,
    'crypto_mismatch',
  ],
  [
    'answers the challenge with invalid data',
    { identity: alice, challenge: () => [1] },
    403,
    'crypto_mismatch',
  ],
  ['never answers the challenge', { identity: alice, challenge: 'silence' }, 400, 'timeout'],
  ['has a malformed DID on its card', { card: { did: 'did:parley:a b' } }, 400, 'did'],
  ['has an unresolvable DID on its card', { card: { did: 'did:web:127.0.0.1' } }, 400, 'did_document'],
  ['has a card without a name', { card: { name: '' } }, 400, 'card'],
  ['has no card', { before: (_request, response) => response.writeHead(404).end() }, 400, 'status'],
  [
    'redirects elsewhere',
    { before: (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end() },
    400,
    'status',
  ],
  ['never responds', { before: () => undefined }, 400, 'timeout'],
  [
    'responds with 1 GB',
    {
      before: (_request, response) => {
        response.writeHead(200, { 'content-length': String(1024 ** 3) })
        const more = () => response.write('x'.repeat(65_536), () => response.destroyed || more())
        more()
      },
    },
    400,
    'too_large',
  ],
  [
    'responds without end',
    {
      before: (_request, response) => {
        const more = () => response.write('x'.repeat(65_536), () => response.destroyed || more())
        more()
      },
    },
    400,
    'too_large',
  ],
  [
    'sends a compressed response',
    { before: (_q, r) => r.writeHead(200, { 'content-encoding': 'gzip' }).end() },
    400,
    'encoding',
  ],
])('an agent that %s is not registered', async (_what, script, status, reason) => {
  await deployment.start({}, { timeoutMs: reason === 'timeout' ? 500 : 20_000 })
  const agent = await deployment.serveAgent(script)
  const answer = await deployment.join(agent.url, await deployment.carol())
  expect([answer.status, answer.error.data.reason]).toEqual([status, reason])
  expect(deployment.gateway.registry.all()).toEqual([])
})

test.each<[unknown, string | undefined]>([
  ['http://127.0.0.1:1', 'not_public'],
  ['http://localhost', 'local_name'],
  ['http://[::1]', 'not_public'],
  ['http://0x7f.1', 'not_public'],
  ['http://10.0.0.1', 'not_public'],
  ['http://169.254.169.254/latest', 'not_public'],
  ['http://private.example', 'not_public'],
  ['http://half-private.example', 'not_public'],
  ['http://metadata.google.internal', 'local_name'],
  ['http://nowhere.example', 'name_not_found'],
  ['ftp://example.com', 'scheme'],
  ['file:///etc/passwd', 'scheme'],
  ['http://user:pass@example.com', 'credentials'],
  ['http://example.com/?a=b', 'query'],
  [`http://example.com/${'a'.repeat(10_000)}`, 'too_long'],
  ['nonsense', 'malformed'],
  ['', undefined],
  [42, undefined],
  [null, undefined],
  [['http://example.com'], undefined],
])('the address %j is refused with 400 and -32602', async (url, reason) => {
  const names: Record<string, string[]> = {
    'private.example': ['192.168.0.1'],
    'half-private.example': ['203.0.113.9', '10.0.0.1'],
  }
  const resolver = async (host: string) => names[host] ?? Promise.reject(new Error('an unknown host'))
  await deployment.start({ REGISTRY_ALLOWED_HOSTS: 'none' }, { resolver })
  const answer = await deployment.send('POST', '/registry/agents', await deployment.carol(), { url })
  expect([answer.status, answer.error.code, answer.error.data.reason]).toEqual([400, -32602, reason])
})

const identified = {
  SERVICE_GATEWAY_DID_SEED: Buffer.alloc(32, 7).toString('base64'),
  SERVICE_GATEWAY_AUTHOR: 'deployment',
  SERVICE_GATEWAY_NAME: 'door',
}

test.each(['', '/', '/agents/external'])(
  'the gateway does not register itself at its address%s',
  async (path) => {
    await deployment.start()
    const free = net.createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as net.AddressInfo
    await new Promise((done) => free.close(done))
    await using named = await RegistrationGateway.open()
    await named.start({
      PORT: String(port),
      PUBLIC_URL: `http://localhost:${port}`,
      REGISTRY_ALLOWED_HOSTS: '127.0.0.1,localhost',
    })
    for (const one of [deployment, named]) {
      const token = await one.carol()
      for (const address of [one.gateway.addresses.local, one.gateway.addresses.public]) {
        const { status, error } = await one.join(`${address}${path}`, token)
        expect([address, status, error.data.reason]).toEqual([address, 400, 'gateway'])
      }
    }
  },
)

test('no agent is registered at an unknown host name of the gateway', async () => {
  await deployment.start({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1,localhost' })
  const { port } = new URL(deployment.gateway.addresses.local)
  const { status, error } = await deployment.join(`http://localhost:${port}`, await deployment.carol())
  expect([status, error.data.reason]).toEqual([400, 'gateway'])
  expect(deployment.gateway.registry.all()).toEqual([])
})

test('no agent is registered under the gateway’s DID, although its document is public', async () => {
  await deployment.start(identified)
  const document = (await deployment.send('GET', '/.well-known/did.json', '')).json
  const card = { did: document['id'] }
  const agent = await deployment.serveAgent({ card, document, challenge: 'no route' })
  const { status, error } = await deployment.join(agent.url, await deployment.carol())
  expect([status, error.data.reason]).toEqual([400, 'gateway'])
  expect(deployment.gateway.registry.all()).toEqual([])
})

test('a client with slow addresses does not block other clients', async () => {
  await deployment.start({}, { timeoutMs: 6000 })
  const slow = await deployment.serveAgent({ before: () => undefined })
  const mallory = await deployment.registered(bob)
  const many = Promise.all(Array.from({ length: 20 }, () => deployment.join(slow.url, mallory)))
  const agent = await deployment.serveAgent({ identity: alice })
  while (slow.calls.length < 4) await new Promise((done) => setTimeout(done, 5))
  expect((await deployment.join(agent.url, await deployment.carol())).status).toBe(201)
  const answers = (await many).map(({ status, error }) => `${status} ${error.data.reason}`)
  expect(new Set(answers)).toEqual(new Set(['400 timeout', '429 busy']))
})
