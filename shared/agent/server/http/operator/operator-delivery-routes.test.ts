import { type OperatorGateway, startOperatorGateway } from '@parley/tools/testing/operator-gateway'
import { encoded, price, TestWallet } from '@parley/tools/testing/paid-agent'
import { raw } from '@parley/tools/testing/raw-http'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import {
  agentDeliveryDetail,
  agentDeliveryList,
  resendAnswer,
} from '@parley/wire/codecs/answers/operator/deliveries'
import { agentPaymentList, agentUsage } from '@parley/wire/codecs/answers/operator/usage'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type TestAgent, testAgent } from '../../../testing.ts'

let gateway: OperatorGateway
let agent: TestAgent
let receiver: WebhookReceiver
const definition: Parameters<typeof testAgent>[0] = {
  handle({ text, usage }) {
    if (text === 'fail') throw new Error('broken')
    usage({ model: 'small', inputTokens: 12, outputTokens: 3 })
    return 'The secret answer'
  },
}
beforeAll(async () => {
  gateway = await startOperatorGateway()
  receiver = await WebhookReceiver.start()
  const env = { GATEWAY_URL: gateway.url, WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' }
  agent = await testAgent(definition, { env })
})
beforeEach(() => {
  receiver.answer = 200
  receiver.posts.length = 0
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

interface Request {
  group?: string
  claims?: object
  body?: object
  of?: TestAgent
}
async function call(
  path: string,
  { group = 'deliveries.read', claims = {}, body, of = agent }: Request = {},
) {
  const token = await gateway.sign(of.did, group, { claims })
  const method = body === undefined ? 'GET' : 'POST'
  return raw(of, { path: `/operator/${path}`, method, token, ...(body && { body: JSON.stringify(body) }) })
}
const listed = async (query: string, claims: object = {}) =>
  agentDeliveryList.parse((await call(`deliveries${query}`, { claims })).json).deliveries
const resend = (path: string, body: object = {}, claims: object = {}) =>
  call(`deliveries/${path}resend`, { group: 'deliveries.resend', body, claims })

/** Sends a task with a webhook, and waits until all its events are settled. */
async function sent(owner: string) {
  const id = crypto.randomUUID()
  const config = { id, url: `${receiver.url}?key=secret`, token: 'webhook-token' }
  const task = await agent.caller(owner).sendAndWait('hello', { push_notification_config: config })
  const path = `${task.id}/${id}`
  await vi.waitFor(async () => {
    const { settled, events } = agentDeliveryDetail.parse((await call(`deliveries/${path}`)).json)
    expect([events > 0, settled]).toEqual([true, events])
  })
  return { task: task.id, path, id }
}

test('a webhook is shown with its attempts and with the bodies that the receiver got, and without its token', async () => {
  const { path } = await sent('alice')
  const { json, text } = await call(`deliveries/${path}`)
  const detail = agentDeliveryDetail.parse(json)
  expect(detail).toMatchObject({ owner: 'alice', state: 'delivered', last_status: 200, dropped: {} })
  expect(detail.bodies.map(({ body }) => body)).toEqual(receiver.posts.map(({ event }) => event))
  expect(detail.tries.map(({ sequence }) => sequence)).toEqual(
    receiver.posts.map(({ event }) => event.sequence).toReversed(),
  )
  expect(text).not.toContain('webhook-token')
})

test('without texts, neither the bodies nor the path of the receiver are shown', async () => {
  const { path, task } = await sent('alice')
  const { json, text } = await call(`deliveries/${path}`, { claims: { texts: false } })
  expect(agentDeliveryDetail.parse(json)).toMatchObject({
    bodies: [],
    url: `${new URL(receiver.url).origin}/…`,
  })
  const [row] = await listed(`?task=${task}`, { texts: false })
  expect(JSON.stringify(row) + text).not.toMatch(/secret/)
})

test('dropped events are found, sent again with the same bytes, and then delivered', async () => {
  receiver.answer = 400
  const { path, task } = await sent('bob')
  expect(await listed('?state=dropped&owner=bob')).toMatchObject([{ task_id: task, last_status: 400 }])
  const before = receiver.posts.map(({ body }) => body.toString())
  receiver.answer = 200
  receiver.posts.length = 0
  const answer = await resend(`${path}/`)
  expect(resendAnswer.parse(answer.json)).toEqual({ configs: 1, events: before.length })
  await receiver.waitFor(before.length)
  expect(receiver.posts.map(({ body }) => body.toString())).toEqual(before)
  await vi.waitFor(async () => expect((await listed(`?task=${task}`))[0]?.state).toBe('delivered'))
})

test('all events that were dropped since a time are sent again', async () => {
  receiver.answer = 400
  const since = new Date(Date.now() - 1000).toISOString()
  await sent('carol')
  await sent('dave')
  receiver.answer = 200
  receiver.posts.length = 0
  const ofCarol = await resend('', { since, owner: 'carol' })
  expect(ofCarol.json).toMatchObject({ configs: 1 })
  await vi.waitFor(async () => expect(await listed('?state=dropped')).toMatchObject([{ owner: 'dave' }]))
  expect((await resend('', { since }, { owner: 'carol' })).json).toMatchObject({ configs: 0, events: 0 })
  expect((await resend('', {})).status).toBe(400)
})

test('a statement for one owner sees and resends only its webhooks', async () => {
  const { path, task } = await sent('alice')
  const claims = { owner: 'bob' }
  expect((await call(`deliveries/${path}`, { claims })).status).toBe(404)
  expect((await resend(`${path}/`, {}, claims)).status).toBe(404)
  expect(await listed(`?task=${task}`, claims)).toEqual([])
  const owners = new Set((await listed('?owner=alice', claims)).map(({ owner }) => owner))
  expect(owners.has('alice')).toBe(false)
})

test.each([
  ['deliveries?limit=0', 'deliveries.read', 400],
  ['deliveries?state=lost', 'deliveries.read', 400],
  ['deliveries?cursor=%7B', 'deliveries.read', 400],
  ['deliveries/none/%24where', 'deliveries.read', 404],
  ['deliveries', 'deliveries.resend', 403],
  ['usage', 'payments.read', 403],
  ['usage?since=2020-01-01', 'usage.read', 400],
  ['usage?since=9999-01-01', 'usage.read', 400],
  ['payments?state=lost', 'payments.read', 400],
])('GET /operator/%s with a statement for %s answers %i', async (path, group, status) => {
  expect((await call(path, { group })).status).toBe(status)
})

test('usage is counted per owner and day, with tokens and outcomes, without a write per task', async () => {
  await agent.caller('erin').sendAndWait('hello')
  await agent.caller('erin').sendAndWait('fail')
  const { json } = await call('usage?owner=erin', { group: 'usage.read' })
  const [row] = agentUsage.parse(json).usage
  expect(row).toMatchObject({
    day: new Date().toISOString().slice(0, 10),
    owner: 'erin',
    tasks: 2,
    completed: 1,
    failed: 1,
    input_tokens: 12,
    output_tokens: 3,
    paid: [],
  })
  const others = await call('usage', { group: 'usage.read', claims: { owner: 'erin' } })
  expect(agentUsage.parse(others.json).usage.map(({ owner }) => owner)).toEqual(['erin'])
})

test('payments of all owners are listed with counts, and settled amounts belong to the usage of their day', async () => {
  const env = { GATEWAY_URL: gateway.url }
  await using paid = await testAgent({ ...definition, executionCost: price }, { env })
  for (const text of ['hello', 'fail']) {
    const message = {
      role: 'user',
      kind: 'message',
      messageId: crypto.randomUUID(),
      parts: [{ kind: 'text', text }],
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: { message } })
    const authorization = `Bearer ${paid.caller('frank').token}`
    const payment = encoded(await new TestWallet().pay())
    const headers = { 'content-type': 'application/json', authorization, 'payment-signature': payment }
    expect((await fetch(paid.url, { method: 'POST', headers, body })).status).toBe(200)
  }
  const ledger = async (query = '', claims: object = {}) =>
    agentPaymentList.parse(
      (await call(`payments${query}`, { group: 'payments.read', claims, of: paid })).json,
    )
  await vi.waitFor(async () => expect((await ledger()).counts).toEqual({ earned: 1, 'payment-orphaned': 1 }))
  const orphaned = await ledger('?state=payment-orphaned')
  expect(orphaned.payments).toMatchObject([{ owner: 'frank', state: 'payment-orphaned', amount: '0.01' }])
  expect((await ledger('?state=orphaned&limit=1')).payments).toEqual(orphaned.payments)
  const first = await ledger('?limit=1')
  const second = await ledger(`?limit=1&cursor=${first.next_cursor}`)
  expect([first.payments.length, second.payments.length, second.next_cursor]).toEqual([1, 1, null])
  expect(await ledger('', { owner: 'bob' })).toEqual({ payments: [], counts: {}, next_cursor: null })
  const { json } = await call('usage', { group: 'usage.read', of: paid })
  expect(agentUsage.parse(json).usage[0]).toMatchObject({
    tasks: 2,
    paid: [{ amount: '0.01', asset_name: price.extra?.name ?? 'USDC', sandbox: true }],
  })
})
