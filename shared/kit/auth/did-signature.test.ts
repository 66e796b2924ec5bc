import { gzipSync } from 'node:zlib'
import { type TestAgent, testAgent } from '@parley/agent/testing'
import { bareSocket, type RawRequest, rpc } from '@parley/tools/testing/raw-http'
import bs58 from 'bs58'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { makeDid } from '../did/did.ts'
import { keyPairFromSeed } from '../did/keys.ts'
import { rawSigningText, signRequest, unixNow } from '../did/signature.ts'

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const otherKey = keyPairFromSeed(Buffer.alloc(32, 2))
const did = makeDid({ author: 'alice', name: 'agent', publicKey: key.publicKey })
const otherDid = makeDid({ author: 'mallory', name: 'agent', publicKey: otherKey.publicKey })

let agent: TestAgent
let strict: TestAgent
beforeAll(async () => {
  agent = await testAgent({ handle: () => 'done' })
  strict = await testAgent({ handle: () => 'done', signatures: 'required' })
  for (const { identityProvider } of [agent, strict]) {
    identityProvider.clients.set(did, { client_id: did, public_key: key.publicKeyBase58 })
  }
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await strict[Symbol.asyncDispose]()
})
afterEach(() => vi.useRealTimers())

const list = JSON.stringify({ jsonrpc: '2.0', id: 'r-1', method: 'tasks/list', params: {} })
const sendBody = (text = 'naïve 😀') =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 'r-1',
    method: 'message/send',
    params: {
      message: {
        role: 'user',
        kind: 'message',
        messageId: crypto.randomUUID(),
        parts: [{ kind: 'text', text }],
      },
    },
  })

interface Call extends RawRequest {
  to?: TestAgent
  as?: string
}

async function call(
  body: string | Uint8Array,
  headers: Record<string, string>,
  { to = agent, as = did }: Call = {},
) {
  const token = to.identityProvider.issue(as)
  const answer = await rpc(to, 'tasks/list', {}, { token, body, headers })
  const error = answer.json.error as { code: number; data: { reason?: string } } | undefined
  return { status: answer.status, id: answer.json.id, code: error?.code, reason: error?.data.reason }
}

const signed = (body = list, more: { timestamp?: number } = {}) => signRequest({ did, key, body, ...more })
const refusal = (reason: string) => ({ status: 403, id: 'r-1', code: -32012, reason })
const fine = { status: 200, id: 'r-1', code: undefined, reason: undefined }

describe('a signed request', () => {
  test('is accepted even with non-ASCII text, escaped or raw', async () => {
    const body = sendBody()
    expect(await call(body, signed(body))).toEqual(fine)
    const timestamp = unixNow()
    const raw = bs58.encode(key.sign(Buffer.from(rawSigningText({ did, body, timestamp }))))
    expect(await call(body, { ...signed(body, { timestamp }), 'x-did-signature': raw })).toEqual(fine)
  })

  test('may be repeated if signatures are not required', async () => {
    const body = sendBody()
    const headers = signed(body)
    expect(await call(body, headers)).toEqual(fine)
    expect(await call(body, headers)).toEqual(fine)
  })

  test.each(['x-did', 'x-did-timestamp', 'x-did-signature'] as const)(
    'only %s, or only the other headers: missing_signature_headers',
    async (name) => {
      const { [name]: only, ...rest } = signed()
      expect(await call(list, rest)).toEqual(refusal('missing_signature_headers'))
      expect(await call(list, { [name]: only })).toEqual(refusal('missing_signature_headers'))
    },
  )

  test('is rejected with client_not_did before any other fault if the client is not a DID', async () => {
    expect(await call(list, signed(), { as: 'alice' })).toEqual(refusal('client_not_did'))
    const junk = { 'x-did': 'x', 'x-did-timestamp': 'x', 'x-did-signature': 'x' }
    expect(await call(list, junk, { as: 'alice' })).toEqual(refusal('client_not_did'))
  })

  test('is rejected with client_not_did if the token has only a subject, even if the subject is a DID', async () => {
    const token = agent.identityProvider.issue('x', { client_id: undefined, sub: did })
    const answer = await rpc(agent, 'tasks/list', {}, { token, body: list, headers: signed() })
    expect(answer.json.error.data).toEqual({ reason: 'client_not_did' })
  })

  test('is rejected with did_mismatch if it has the DID of another client', async () => {
    const theirs = signRequest({ did: otherDid, key: otherKey, body: list })
    expect(await call(list, theirs)).toEqual(refusal('did_mismatch'))
    expect(
      await call(list, { ...signed(), 'x-did': did.toUpperCase().replace('DID:PARLEY', 'did:parley') }),
    ).toEqual(refusal('did_mismatch'))
  })

  test('is rejected with public_key_unavailable if the client has no acceptable key', async () => {
    const { clients } = agent.identityProvider
    const theirs = signRequest({ did: otherDid, key: otherKey, body: list })
    const unusable = [
      undefined,
      {},
      { public_key: null },
      { public_key: '' },
      { public_key: 'not base58: 0OIl' },
      { public_key: bs58.encode(Buffer.alloc(31, 9)) },
      { public_key: bs58.encode(Buffer.alloc(33, 9)) },
      { public_key: '1'.repeat(32) },
      { public_key: bs58.encode(Buffer.from(`01${'00'.repeat(31)}`, 'hex')) },
      { metadata: {}, public_key: null },
    ]
    for (const metadata of unusable) {
      if (metadata === undefined) clients.delete(otherDid)
      else clients.set(otherDid, metadata)
      expect([metadata, await call(list, theirs, { as: otherDid })]).toEqual([
        metadata,
        refusal('public_key_unavailable'),
      ])
    }
    clients.set(otherDid, { metadata: { public_key: otherKey.publicKeyBase58 } })
    expect(await call(list, theirs, { as: otherDid })).toEqual(fine)
  })

  test.each([
    [-301, refusal('timestamp_out_of_window')],
    [-300, fine],
    [0, fine],
    [300, fine],
    [301, refusal('timestamp_out_of_window')],
    [-1e9, refusal('timestamp_out_of_window')],
    [1e11, refusal('timestamp_out_of_window')],
  ])('is accepted or rejected with a clock difference of %s seconds', async (offset, expected) => {
    vi.useFakeTimers({ toFake: ['Date'] })
    vi.setSystemTime(Math.floor(Date.now() / 1000) * 1000 + 999)
    expect(await call(list, signed(list, { timestamp: unixNow() + offset }))).toEqual(expected)
  })
})

describe('a malformed header is rejected with malformed_input', () => {
  const now = () => String(unixNow())
  const signature = () => signed()['x-did-signature']

  test.each<[string, () => Record<string, string>]>([
    ['an empty DID', () => ({ 'x-did': '' })],
    ['a repeated DID', () => ({ 'x-did': `${did}, ${did}` })],
    ['a DID of 10,000 characters', () => ({ 'x-did': `did:parley:${'a'.repeat(10_000)}` })],
    ['a text that is not a DID', () => ({ 'x-did': 'alice' })],
    ['a DID with a slash', () => ({ 'x-did': `${did}/x` })],
    ['an empty timestamp', () => ({ 'x-did-timestamp': '' })],
    ['a repeated timestamp', () => ({ 'x-did-timestamp': `${now()}, ${now()}` })],
    ['a fractional timestamp', () => ({ 'x-did-timestamp': `${now()}.0` })],
    ['a timestamp with a plus sign', () => ({ 'x-did-timestamp': `+${now()}` })],
    ['a negative timestamp', () => ({ 'x-did-timestamp': `-${now()}` })],
    ['a timestamp with a leading zero', () => ({ 'x-did-timestamp': `0${now()}` })],
    ['a hexadecimal timestamp', () => ({ 'x-did-timestamp': '0x10' })],
    ['a timestamp with an exponent', () => ({ 'x-did-timestamp': '1e9' })],
    ['a date as a timestamp', () => ({ 'x-did-timestamp': '2025-01-01T00:00:00Z' })],
    ['a timestamp of 1,000 digits', () => ({ 'x-did-timestamp': '1'.repeat(1000) })],
    ['an empty signature', () => ({ 'x-did-signature': '' })],
    ['a repeated signature', () => ({ 'x-did-signature': `${signature()}, ${signature()}` })],
    ['a signature with the invalid character 0', () => ({ 'x-did-signature': `0${signature().slice(1)}` })],
    [
      'a signature with the invalid character l',
      () => ({ 'x-did-signature': `${signature().slice(0, -1)}l` }),
    ],
    ['a signature in hexadecimal', () => ({ 'x-did-signature': 'ab'.repeat(64) })],
    [
      'a signature in base64',
      () => ({ 'x-did-signature': Buffer.from(key.sign(Buffer.from('x'))).toString('base64') }),
    ],
    ['a signature of 63 bytes', () => ({ 'x-did-signature': bs58.encode(Buffer.alloc(63, 9)) })],
    ['a signature of 65 bytes', () => ({ 'x-did-signature': bs58.encode(Buffer.alloc(65, 9)) })],
    ['a signature of 10,000 characters', () => ({ 'x-did-signature': '2'.repeat(10_000) })],
  ])('%s', async (_what, wrong) => {
    expect(await call(list, { ...signed(), ...wrong() })).toEqual(refusal('malformed_input'))
  })
})

test.each(['X-DID', 'X-DID-Timestamp', 'X-DID-Signature'])(
  'two %s headers lead to malformed_input',
  async (name) => {
    const headers = { authorization: `Bearer ${agent.identityProvider.issue(did)}`, ...signed() }
    const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}\r\n`)
    const doubled = `${name}: ${signed()[name.toLowerCase() as 'x-did']}\r\n`
    const head = `POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${list.length}\r\n`
    const answer = await bareSocket(agent.url, `${head}${lines.join('')}${doubled}\r\n${list}`)
    expect(answer).toMatch(/^HTTP\/1\.1 403 /)
    expect(answer).toContain('"reason":"malformed_input"')
  },
)

describe('a signature that does not match the request is rejected with crypto_mismatch', () => {
  const L = 2n ** 252n + 27742317777372353535851937790883648493n
  const headers = () => signed()
  const bytesOf = () => Buffer.from(bs58.decode(headers()['x-did-signature']))
  const withSignature = (bytes: Uint8Array) => ({ ...headers(), 'x-did-signature': bs58.encode(bytes) })
  const fromLittleEndian = (bytes: Buffer) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)

  test.each<[string, string | Uint8Array, (() => Record<string, string>)?]>([
    ['the body changed by one byte', list.replace('tasks/list', 'tasks/lisT')],
    ['the body serialized again', JSON.stringify(JSON.parse(list), null, 1)],
    ['the body with a trailing line break', `${list}\n`],
    ['another timestamp', list, () => ({ ...headers(), 'x-did-timestamp': String(unixNow() - 5) })],
    ['another key', list, () => signRequest({ did, key: otherKey, body: list })],
    ['zeros', list, () => withSignature(Buffer.alloc(64))],
    [
      'S ≥ L',
      list,
      () => {
        const bytes = bytesOf()
        const s = fromLittleEndian(bytes.subarray(32)) + L
        Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse().copy(bytes, 32)
        return withSignature(bytes)
      },
    ],
    [
      'one flipped bit',
      list,
      () => {
        const bytes = bytesOf()
        bytes[10] = (bytes[10] as number) ^ 1
        return withSignature(bytes)
      },
    ],
  ])('%s', async (_what, body, wrong = headers) => {
    expect(await call(body, wrong())).toEqual(refusal('crypto_mismatch'))
  })

  test('a body that was compressed after signing', async () => {
    const answer = await call(gzipSync(list), { ...headers(), 'content-encoding': 'gzip' })
    expect(answer).toEqual({ ...refusal('crypto_mismatch'), id: null })
  })

  test('a body that is not UTF-8', async () => {
    const answer = await call(Buffer.from([0x22, 0xff, 0x22]), signed('"\ufffd"'))
    expect(answer).toEqual({ ...refusal('crypto_mismatch'), id: null })
  })
})

describe('the order of the checks', () => {
  test('the token is checked before the signature, and the signature before the body and the scope', async () => {
    const noToken = await rpc(
      agent,
      'tasks/list',
      {},
      { token: 'unknown', body: list, headers: { 'x-did': did } },
    )
    expect(noToken.json.error.code).toBe(-32010)
    expect(await call('{', { 'x-did': did })).toEqual({ ...refusal('missing_signature_headers'), id: null })
    const token = agent.identityProvider.issue(did, { scope: '' })
    const noScope = await rpc(agent, 'tasks/list', {}, { token, body: list, headers: { 'x-did': did } })
    expect(noScope.json.error.code).toBe(-32012)
  })
})

describe('an agent that requires signatures', () => {
  const send = (body: string, headers: Record<string, string>, as = did) =>
    call(body, headers, { to: strict, as })

  test('rejects unsigned requests only from clients that are DIDs', async () => {
    expect(await send(list, {})).toEqual(refusal('missing_signature_headers'))
    expect(await send(list, {}, 'alice')).toEqual(fine)
  })

  test('accepts a signed write only once, while a signed read may be repeated', async () => {
    const body = sendBody()
    const headers = signed(body)
    expect(await send(body, headers)).toEqual(fine)
    expect(await send(body, headers)).toEqual(refusal('replayed'))
    expect(await send(list, signed())).toEqual(fine)
    expect(await send(list, signed())).toEqual(fine)
    const again = sendBody()
    expect(await send(again, signed(again))).toEqual(fine)
  })

  test('accepts only one of 20 concurrent copies', async () => {
    const body = sendBody()
    const headers = signed(body)
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(body, headers)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ reason }) => reason === 'replayed')).toHaveLength(19)
  })
})
