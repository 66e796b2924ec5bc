import { randomUUID } from 'node:crypto'
import { makeDid } from '@parley/kit/did/did'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { signRequest, unixNow } from '@parley/kit/did/signature'
import { rpc } from '@parley/tools/testing/raw-http'
import { methods as names } from '@parley/wire/codecs/parley/methods'
import { type Operation, operations } from '@parley/wire/model/operation'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'
import { methods } from './table.ts'

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const did = makeDid({ author: 'alice', name: 'agent', publicKey: key.publicKey })

let agent: TestAgent
let goOn: () => void

beforeEach(async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  goOn = resolve
  agent = await testAgent(
    {
      signatures: 'required',
      concurrency: 1,
      handle: async ({ text }) => {
        if (text === 'wait') await promise
        return 'done'
      },
    },
    { env: { TASK_QUEUE_MAX: '1' } },
  )
  agent.identityProvider.clients.set(did, { client_id: did, public_key: key.publicKeyBase58 })
})
afterEach(async () => {
  goOn()
  await agent[Symbol.asyncDispose]()
})

/** A call that is signed once and can be sent again unchanged. */
function signedCall(method: string, params: object, headers: Record<string, string> = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method, params })
  const signed = { ...signRequest({ did, key, body }), ...headers }
  return async () => {
    const token = agent.identityProvider.issue(did)
    const { status, json } = await rpc(agent, method, params, { token, body, headers: signed })
    return { status, reason: json?.error?.data?.reason, code: json?.error?.code, result: json?.result }
  }
}

const message = (text: string, fields: object = {}) => ({
  message: { role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text }], ...fields },
})
const fine = { status: 200, code: undefined }
const replayed = { status: 403, code: -32012, reason: 'replayed' }

test('a message refused by a full queue does not use up its signature, so that the same request is accepted once later', async () => {
  for (const text of ['wait', 'wait'])
    expect(await signedCall('message/send', message(text))()).toMatchObject(fine)
  const call = signedCall('message/send', message('now'))
  for (let time = 0; time < 2; time++)
    expect(await call()).toMatchObject({ status: 503, code: -32042, reason: 'queue_full' })
  goOn()
  await expect.poll(async () => (await call()).status).toBe(200)
  expect(await call()).toMatchObject(replayed)
})

test('one of 20 concurrent copies is accepted, and the others occupy no place in the queue', async () => {
  const call = signedCall('message/send', message('x'))
  const answers = await Promise.all(Array.from({ length: 20 }, () => call()))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect((await signedCall('tasks/list', {})()).result).toHaveLength(1)
  expect(await signedCall('message/send', message('y'))()).toMatchObject(fine)
})

test.each<[string, object]>([
  ['message/send', {}],
  ['message/send', message('x', { referenceTaskIds: [randomUUID()] })],
  ['message/stream', {}],
  ['tasks/cancel', { id: randomUUID() }],
  ['tasks/feedback', { id: randomUUID(), feedback: 'good' }],
])(
  'a repeated %s with the invalid params %j is refused again because of the params',
  async (method, params) => {
    const call = signedCall(method, params)
    const first = await call()
    expect(first.status).toBeGreaterThanOrEqual(400)
    expect(await call()).toEqual(first)
    expect(first.reason).not.toBe('replayed')
  },
)

test('feedback is accepted once', async () => {
  const sent = await signedCall('message/send', message('x'))()
  const { id } = sent.result as { id: string }
  const rate = signedCall('tasks/feedback', { id, feedback: 'good' })
  await expect.poll(async () => (await rate()).status).toBe(200)
  expect(await rate()).toMatchObject(replayed)
})

test('repeating a message with its Idempotency-Key needs a new signature', async () => {
  const params = message('x')
  const call = signedCall('message/send', params, { 'idempotency-key': 'k' })
  const first = await call()
  expect(await call()).toMatchObject(replayed)
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params })
  const later = signRequest({ did, key, body, timestamp: unixNow() + 1 })
  const again = await signedCall('message/send', params, { 'idempotency-key': 'k', ...later })()
  expect((again.result as { id: string }).id).toBe((first.result as { id: string }).id)
})

const isTakenForIt = (operation: Operation) =>
  operations[operation].scope === 'agent:write' && methods[operation].takesSignature === undefined

test.each([...names].filter(([, { operation }]) => isTakenForIt(operation)))(
  'the signature of %s counts once, even if the call fails',
  async (method) => {
    const call = signedCall(method, {})
    expect((await call()).reason).not.toBe('replayed')
    expect(await call()).toMatchObject(replayed)
  },
)

test('a request signed for one agent is refused by other agents, and a request without an audience by all', async () => {
  await using other = await testAgent(
    { signatures: 'required', handle: () => 'done' },
    { identityProvider: agent.identityProvider },
  )
  const audiences = [agent.url, `${agent.url}/`, agent.app.services.did]
  for (const audience of audiences) {
    const params = message('x')
    const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params })
    const headers: Record<string, string> = { ...signRequest({ did, key, body, audience }) }
    const token = agent.identityProvider.issue(did)
    const send = async (to: TestAgent, signed: Record<string, string>) => {
      const { status, json } = await rpc(to, 'message/send', params, { token, body, headers: signed })
      return [status, json?.error?.data?.reason]
    }
    const { 'x-did-audience': _, ...stripped } = headers
    expect(await send(other, headers)).toEqual([403, 'audience_mismatch'])
    expect(await send(other, stripped)).toEqual([403, 'crypto_mismatch'])
    expect(await send(other, { ...stripped, 'x-did-audience': other.url })).toEqual([403, 'crypto_mismatch'])
    expect(await send(agent, headers)).toEqual([200, undefined])
    expect(await send(agent, headers)).toEqual([403, 'replayed'])
  }
})

test.each(['', 'x'.repeat(3000), 'https://other.example'])('the audience %j is refused', async (audience) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} })
  const headers = { ...signRequest({ did, key, body, audience }) }
  const token = agent.identityProvider.issue(did)
  const { status, json } = await rpc(agent, 'tasks/list', {}, { token, body, headers })
  expect([status, json?.error?.code]).toEqual([403, -32012])
})
