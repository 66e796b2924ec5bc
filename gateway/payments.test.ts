import { setTimeout as delay } from 'node:timers/promises'
import { testAgent } from '@parley/agent/testing'
import { decoded, encoded, price, TestWallet } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import {
  agent,
  bearer,
  call,
  type FakeAgent,
  fail,
  gateway,
  gatewayForEachTest,
  identityProvider,
  post,
  restart,
  saying,
} from './testing.ts'

gatewayForEachTest()

const weather = 'Weather forecast for any city'
const payTo = '0x1111111111111111111111111111111111111111'
const card = (name: string, to = payTo) => ({
  name,
  description: weather,
  executionCost: { amount: '0.01', payTo: to },
})
const paid = (name: string) => agent(name, weather, { card: card(name) })
/** Creates a signed transfer to this address. */
const transferTo = (to: string) => {
  const accepted = { scheme: 'exact', network: 'eip155:84532', asset: '0x01', amount: '10000', payTo: to }
  const times = { value: '10000', validAfter: '0', validBefore: '9999999999' }
  const authorization = { from: payTo, to, ...times, nonce: `0x${'2'.repeat(64)}` }
  const payload = { signature: `0x${'1'.repeat(130)}`, authorization }
  return { 'x-payment': encoded({ x402Version: 2, accepted, payload }) }
}
const transfer = transferTo(payTo)

/** Makes the agent respond with 402 until it receives a payment. */
function asksForMoney(one: FakeAgent): void {
  one.on['message/send'] = ({ headers, params, response }) => {
    if (headers['x-payment'] ?? headers['payment-signature'] ?? headers['x-payment-session'])
      return one.take(params)
    response.writeHead(402, { 'content-type': 'application/json', 'payment-required': 'eyJ4IjoxfQ==' })
    response.end('{"x402Version":2,  "error":"payment_required","accepts":[]}')
    return undefined
  }
}

/** Makes the agent report that it has this payment session. */
function made(one: FakeAgent, id: string): void {
  one.get = (path, request) => {
    if (path !== `/api/payment-status/${id}` || request.headers.authorization === undefined) return undefined
    return { session_id: id, status: 'completed' }
  }
}

const chosenFirst = async () => {
  const [first, second] = [await paid('sky'), await paid('skyline')]
  asksForMoney(first)
  asksForMoney(second)
  const message = saying('weather forecast')
  const refused = await call('message/send', message)
  const isFirst = refused.headers.get('x-agent') === 'sky'
  return { message, refused, asked: isFirst ? first : second, other: isFirst ? second : first }
}

test('a 402 is returned unmodified, and the repeated message goes to the same agent, even after a restart', async () => {
  const { message, refused, asked, other } = await chosenFirst()
  expect([refused.status, refused.text]).toEqual([
    402,
    '{"x402Version":2,  "error":"payment_required","accepts":[]}',
  ])
  expect(refused.headers.get('payment-required')).toBe('eyJ4IjoxfQ==')
  await restart()
  await other.register(other.slug, `${weather}, forecast weather forecast`, { card: card(other.slug) })
  await asked.register(asked.slug, 'Something else by now', { card: card(asked.slug) })
  const taken = await call('message/send', message, transfer)
  expect([taken.status, taken.headers.get('x-agent')]).toEqual([200, asked.slug])
  expect(asked.sent().at(-1)?.headers['x-payment']).toBe(transfer['x-payment'])
  const capitals = { ...message.message, messageId: message.message.messageId.toUpperCase() }
  const again = await call('message/send', { message: capitals })
  expect(again.headers.get('x-agent')).toBe(asked.slug)
  expect(other.sent()).toEqual([])
  // A message from another caller with the same id is independent.
  const bobs = await call('message/send', message, { authorization: bearer('bob') })
  expect(bobs.headers.get('x-agent')).toBe(other.slug)
})

test('if the agent that requested payment has left, the caller gets 503 and no other agent receives the payment', async () => {
  const { message, asked, other } = await chosenFirst()
  await asked.stop()
  const refused = await call('message/send', message, transfer)
  expect([refused.status, refused.json.error.code]).toEqual([503, -32042])
  const entry = gateway().registry.bySlug(asked.slug)
  await gateway().registry.remove(entry?.id ?? '')
  const gone = await call('message/send', message, transfer)
  expect([gone.status, gone.json.error.code]).toEqual([503, -32042])
  expect(other.sent()).toEqual([])
})

test('a payment goes to one agent only, and a busy or absent payee is not replaced', async () => {
  const [sky, skyline] = [await paid('sky'), await paid('skyline')]
  const busy = (one: FakeAgent) => {
    one.on['message/send'] = ({ response, id }) => fail(response, id, 503, -32042, { reason: 'queue_full' })
  }
  busy(sky)
  busy(skyline)
  const message = saying('weather forecast')
  expect((await call('message/send', message, transfer)).status).toBe(503)
  const [first, second] = sky.sent().length === 1 ? [sky, skyline] : [skyline, sky]
  expect([first.sent().length, second.sent().length]).toEqual([1, 0])
  delete second.on['message/send']
  await first.register(first.slug, 'Something else by now', { card: card(first.slug) })
  expect((await call('message/send', message, transfer)).status).toBe(503)
  expect([first.sent().length, second.sent().length]).toEqual([2, 0])
  // Without a payment, the next agent is tried.
  expect((await call('message/send', saying('weather forecast'))).status).toBe(200)
  expect(second.sent()).toHaveLength(1)
})

test('a payment without a prior 402 goes to the agent whose card names its payTo address, and to no other', async () => {
  const other = `0x${'3'.repeat(40)}`
  const best = await agent('sky', `${weather}, forecast weather forecast`, { card: card('sky') })
  const payee = await agent('skyline', weather, { card: card('skyline', other) })
  const free = await agent('clouds', weather)
  const sent = await call(
    'message/send',
    saying('weather forecast'),
    transferTo(other.toUpperCase().replace('0X', '0x')),
  )
  expect([sent.status, sent.headers.get('x-agent')]).toEqual([200, 'skyline'])
  expect(payee.sent()).toHaveLength(1)
  for (const headers of [transferTo(`0x${'4'.repeat(40)}`), { 'x-payment': encoded({ x402Version: 9 }) }]) {
    const refused = await call('message/send', saying('weather forecast'), headers)
    expect(refused).toMatchObject({
      status: 400,
      json: { error: { code: -32602, data: { reason: 'payee_unknown' } } },
    })
  }
  expect([...best.sent(), ...free.sent(), ...payee.sent().slice(1)]).toEqual([])
})

test.each([
  ['the header X-PAYMENT-SESSION', (id: string) => ({ headers: { 'x-payment-session': id } })],
  [
    'X-PAYMENT that holds the handle',
    (id: string) => ({ headers: { 'x-payment': encoded({ session_id: id }) } }),
  ],
  ['message.metadata', (id: string) => ({ more: { metadata: { payment_session_id: id } } })],
])(
  'a session in %s goes to the agent that created it: found by a query once, then by its route',
  async (_where, show) => {
    const id = crypto.randomUUID()
    const free = await agent('sky', `${weather}, the best`)
    const [payee, other] = [await paid('skyline'), await paid('clouds')]
    made(payee, id)
    const { headers, more } = { headers: {}, more: {}, ...show(id) }
    const message = saying('weather forecast', more)
    const first = await call('message/send', message, headers)
    expect([first.status, first.headers.get('x-agent')]).toEqual([200, 'skyline'])
    await restart()
    await payee.register('skyline', weather, { card: card('skyline') })
    payee.get = undefined
    expect((await call('message/send', saying('weather', more), headers)).headers.get('x-agent')).toBe(
      'skyline',
    )
    await payee.stop()
    await other.register('clouds', weather, { card: card('clouds') })
    expect((await call('message/send', saying('weather', more), headers)).status).toBe(503)
    expect([free.sent().length, other.sent().length]).toEqual([0, 0])
  },
)

test('an unknown session gives 404, a session whose agent may be down gives 503, and no agent gets the message', async () => {
  const [sky, skyline] = [await paid('sky'), await paid('skyline')]
  const headers = { 'x-payment-session': crypto.randomUUID() }
  const unknown = await call('message/send', saying('weather'), headers)
  expect([unknown.status, unknown.json.error.data.reason]).toEqual([404, 'payment_session'])
  await skyline.stop()
  const away = await call('message/send', saying('weather'), { 'x-payment-session': crypto.randomUUID() })
  expect([away.status, away.json.error.code]).toEqual([503, -32042])
  expect([sky.sent().length, skyline.sent().length]).toEqual([0, 0])
})

test('a message in the context of one agent with a payment for another gets -32602 and reaches neither agent', async () => {
  const [sky, payee] = [await agent('sky', weather), await paid('board')]
  const contextId = crypto.randomUUID()
  await call('message/send', saying('weather forecast', { contextId }))
  const id = crypto.randomUUID()
  made(payee, id)
  const refused = await call('message/send', saying('more', { contextId }), { 'x-payment-session': id })
  expect(refused.json.error).toMatchObject({
    code: -32602,
    data: { issues: [{ path: 'message.contextId' }] },
  })
  expect([sky.sent().length, payee.sent().length]).toEqual([1, 0])
})

async function realAgent(env: Record<string, string> = {}) {
  const one = await testAgent(
    { name: 'paid', executionCost: price, handle: () => 'done' },
    { identityProvider: identityProvider(), env: { GATEWAY_URL: gateway().addresses.public, ...env } },
  )
  const shownCard = await (await fetch(`${one.url}/.well-known/agent.json`)).json()
  const skill = { id: 'a', name: 'a', description: weather, tags: [] }
  const skills = [{ ...skill, input_modes: ['text/plain'], output_modes: ['text/plain'] }]
  await gateway().registry.register({
    name: 'paid',
    description: weather,
    url: one.url,
    card: shownCard as never,
    skills: skills as never,
    owner: 'paid',
    origin: 'supervised',
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
  })
  return one
}

test('resource.url of a 402 is the address that the caller used, not that of the agent behind the gateway', async () => {
  await using one = await realAgent({ TRUSTED_PROXIES: '127.0.0.1' })
  const origin = gateway().addresses.public
  const message = saying('weather forecast')
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'one', method: 'message/send', params: message })
  for (const [route, url] of [
    ['/', origin],
    ['/message/send', origin],
    ['/agents/paid/', `${origin}/agents/paid`],
    ['/agents/paid/message/send', `${origin}/agents/paid`],
  ] as const) {
    const { status, json, headers } = await post(route, body)
    expect([route, status, json.accepts[0].resource]).toEqual([route, 402, url])
    expect(decoded(headers.get('payment-required'))).toMatchObject({ resource: { url } })
  }
  const direct = await fetch(`${one.url}/`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: bearer('alice'),
      'x-forwarded-host': 'evil.example',
      'x-forwarded-prefix': '/',
    },
    body,
  })
  expect(await direct.json()).toMatchObject({ accepts: [{ resource: one.url }] })
})

test('message/stream accepts payments in both header versions through the gateway, and the receipt comes with the stream', async () => {
  await using _one = await realAgent()
  const message = saying('weather forecast')
  expect((await call('message/stream', message)).status).toBe(402)
  const { 'x-payment': payment = '' } = await new TestWallet().header()
  const paidFor = await call('message/stream', message, { 'payment-signature': payment })
  expect([paidFor.status, paidFor.headers.get('content-type')]).toEqual([
    200,
    expect.stringMatching(/^text.event-stream/),
  ])
  expect(decoded(paidFor.headers.get('payment-response'))).toMatchObject({ success: true })
  expect(paidFor.text).toContain('"state":"completed"')
})

test('payments work with a real agent behind the gateway: card, negotiation, 402, payment, receipt and session', async () => {
  await using _one = await realAgent()
  const authorization = bearer('alice')
  const ask = async (more: object) => {
    const response = await fetch(`${gateway().addresses.public}/agent/negotiation`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        task_summary: 'weather forecast',
        weights: { skill_match: 1, cost: 1 },
        ...more,
      }),
    })
    return (await response.json()) as { candidates: never[]; can_handle: boolean }
  }
  const [candidate] = (await ask({})).candidates
  expect(candidate).toMatchObject({ estimated_cost_amount: '0.01', subscores: { cost: 0.5 } })
  expect(await ask({ max_cost_amount: '0.009' })).toMatchObject({ can_handle: false })
  expect((await ask({ max_cost_amount: '0.01' })).can_handle).toBe(true)
  const base = `${gateway().addresses.public}/agents/paid`
  const rest = (path: string, method = 'GET') =>
    fetch(`${base}${path}`, { method, headers: { authorization } })
  const session = (await (await rest('/api/start-payment-session', 'POST')).json()) as Record<string, string>
  expect(session).toMatchObject({ status: 'pending', amount: '0.01', sandbox: true })
  const waits = rest(`/api/payment-status/${session['session_id']}?wait=true`)
  await delay(50)
  const payment = await new TestWallet().pay()
  const captured = await fetch(session['capture_url'] as string, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(payment),
  })
  expect(captured.status).toBe(200)
  expect(await (await waits).json()).toMatchObject({ status: 'completed' })
  const bySession = await call('message/send', saying('weather'), {
    'x-payment-session': session['session_id'] as string,
  })
  expect([bySession.status, bySession.headers.get('x-agent')]).toEqual([200, 'paid'])
  const message = saying('weather forecast')
  const asked = await call('message/send', message)
  expect(asked.json).toMatchObject({
    error: 'payment_required',
    accepts: [{ amount: '10000' }],
    sandbox: true,
  })
  expect(decoded(asked.headers.get('payment-required'))).toMatchObject({ x402Version: 2 })
  const taken = await call('message/send', message, await new TestWallet().header())
  for (const name of ['payment-response', 'x-payment-response'])
    expect(decoded(taken.headers.get(name))).toMatchObject({ success: true, extra: { sandbox: true } })
  const seen = await call('tasks/get', { task_id: taken.json.result.id })
  expect(seen.status).toBe(200)
})
