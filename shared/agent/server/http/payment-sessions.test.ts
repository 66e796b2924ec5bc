import { randomUUID } from 'node:crypto'
import { statusOf } from '@parley/engine/payments/ledger/sessions'
import { nonceKeyOf } from '@parley/engine/payments/x402/match-terms'
import type { SignedTransfer } from '@parley/engine/store/payment-store'
import {
  encoded,
  price,
  requirements,
  requirementsInBody,
  TestWallet,
} from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import { type TestAgent, type TestCaller, testAgent } from '../../testing.ts'

const wallet = new TestWallet()
const paidAgent = () => testAgent({ handle: ({ text }) => text, executionCost: price })

interface Session {
  session_id: string
  status: string
  capture_url: string
  expires_at: string
  [key: string]: unknown
}

async function ask(caller: TestCaller | undefined, url: string, body?: object) {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(caller && { authorization: `Bearer ${caller.token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape on the wire
  return { status: response.status, body: (await response.json()) as any }
}

const start = async (agent: TestAgent, caller: TestCaller, body = {}): Promise<Session> =>
  (await ask(caller, `${agent.url}/api/start-payment-session`, body)).body
const status = (agent: TestAgent, caller: TestCaller, id: string, query = '') =>
  ask(caller, `${agent.url}/api/payment-status/${id}${query}`)

/** Sends a message with the session; returns the HTTP status and the error. */
async function sendWith(
  agent: TestAgent,
  caller: TestCaller,
  headers: Record<string, string>,
  metadata?: object,
) {
  const message = {
    role: 'user',
    kind: 'message',
    messageId: randomUUID(),
    parts: [{ kind: 'text', text: 'hi' }],
    ...(metadata && { metadata }),
  }
  const response = await fetch(agent.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${caller.token}`, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: { message } }),
  })
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape on the wire
  return { status: response.status, body: (await response.json()) as any }
}

test('POST /api/start-payment-session returns an open session', async () => {
  await using agent = await paidAgent()
  const session = await start(agent, agent.caller('alice'))
  expect(session).toMatchObject({
    status: 'pending',
    amount: '0.01',
    asset: price.asset,
    network: 'eip155:84532',
    pay_to: price.payTo,
    sandbox: true,
    capture_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/pay\/[\w-]{32}$/),
  })
  const left = Date.parse(session.expires_at) - Date.now()
  expect(Math.round(left / 60_000)).toBe(15)
})

test('an agent without prices answers 404', async () => {
  await using agent = await testAgent({ handle: () => 'free' })
  const alice = agent.caller('alice')
  const answer = await ask(alice, `${agent.url}/api/start-payment-session`, {})
  expect(answer).toMatchObject({ status: 404, body: { error: { code: -32040 } } })
  expect((await status(agent, alice, randomUUID())).status).toBe(404)
})

test('starting a session requires agent:write, and reading its status requires agent:read', async () => {
  await using agent = await paidAgent()
  const reader = agent.caller('reader', 'agent:read')
  const url = `${agent.url}/api/start-payment-session`
  expect(await ask(reader, url, {})).toMatchObject({ status: 403, body: { error: { code: -32013 } } })
  expect(await ask(undefined, url, {})).toMatchObject({ status: 401, body: { error: { code: -32009 } } })
})

test.each<[string, (id: string) => [Record<string, string>, object?]]>([
  ['message.metadata.payment_session_id', (id) => [{}, { payment_session_id: id }]],
  ['X-PAYMENT-SESSION', (id) => [{ 'x-payment-session': id }]],
  ['an X-PAYMENT that decodes to {session_id}', (id) => [{ 'x-payment': encoded({ session_id: id }) }]],
])('a paid session, named by %s, pays for one message', async (_name, handle) => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const session = await start(agent, alice)
  const send = () => sendWith(agent, alice, ...handle(session.session_id))
  expect(await send()).toMatchObject({ status: 402, body: { error: 'payment_session_pending' } })
  const paid = await ask(undefined, session.capture_url, await wallet.pay())
  expect(paid).toMatchObject({ status: 200, body: { session: { status: 'completed' } } })
  expect((await status(agent, alice, session.session_id)).body).toMatchObject({
    status: 'completed',
    payer: wallet.account.address,
    tx_hash: expect.stringMatching(/^0x[\da-f]{64}$/),
    completed_at: expect.stringMatching(/\+00:00$/),
  })
  const sent = await send()
  expect(sent.status).toBe(200)
  expect((await alice.wait(sent.body.result.id)).status.state).toBe('completed')
  expect(await send()).toMatchObject({ status: 402, body: { error: 'payment_session_spent' } })
})

test('exactly one of ten concurrent messages with one session succeeds', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const session = await start(agent, alice)
  await ask(undefined, session.capture_url, await wallet.pay())
  const headers = { 'x-payment-session': session.session_id }
  const answers = await Promise.all(Array.from({ length: 10 }, () => sendWith(agent, alice, headers)))
  expect(answers.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([
    200,
    ...Array<number>(9).fill(402),
  ])
})

test('a session of another owner is reported as not found', async () => {
  await using agent = await paidAgent()
  const [alice, bob] = [agent.caller('alice'), agent.caller('bob')]
  const session = await start(agent, alice)
  await ask(undefined, session.capture_url, await wallet.pay())
  const missing = await status(agent, bob, randomUUID(), '?wait=true')
  expect(await status(agent, bob, session.session_id)).toEqual(missing)
  expect(missing).toMatchObject({
    status: 404,
    body: { error: { code: -32040, data: { reason: 'payment_session' } } },
  })
  const sent = await sendWith(agent, bob, { 'x-payment-session': session.session_id })
  expect(sent).toMatchObject({ status: 402, body: { error: 'payment_session_not_found' } })
})

test('wait=true answers as soon as the session is paid, and immediately if the session has ended', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const session = await start(agent, alice)
  const waiting = status(agent, alice, session.session_id, '?wait=true')
  await ask(undefined, session.capture_url, await wallet.pay())
  expect((await waiting).body).toMatchObject({ status: 'completed' })
  expect((await status(agent, alice, session.session_id, '?wait=true')).body).toMatchObject({
    status: 'completed',
  })
})

test('wait=true on an expired session with a pending payment waits without polling in a loop', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const session = await start(agent, alice)
  const { store, payments: paid } = agent.app.services
  const row = await store.payments.loadPayment(session.session_id)
  if (row === undefined || paid === undefined) throw new Error('no row')
  const later = Date.now() + 3_600_000
  const waiting = { ...row, state: 'unknown' as const, expiresAt: 1, dueAt: later, version: row.version + 1 }
  await store.payments.commitPayment(waiting)
  const find = store.payments.findPayment.bind(store.payments)
  let asked = 0
  store.payments.findPayment = (...given) => {
    asked += 1
    return find(...given)
  }
  const answer = await paid.sessions.wait(session.session_id, row.owner, AbortSignal.timeout(500))
  expect(statusOf(answer)).toBe('pending')
  expect(asked).toBeLessThan(10)
})

test('the owner can still read an expired session, but it cannot be paid or used, and it ends a wait', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const session = await start(agent, alice)
  const { payments } = agent.app.services.store
  const row = await payments.loadPayment(session.session_id)
  if (row === undefined) throw new Error('no row')
  const soon = Date.now() + 200
  await payments.commitPayment({ ...row, expiresAt: soon, dueAt: soon, version: row.version + 1 })
  expect((await status(agent, alice, session.session_id, '?wait=true')).body).toMatchObject({
    status: 'expired',
  })
  const paid = await ask(undefined, session.capture_url, await wallet.pay())
  expect(paid).toMatchObject({ status: 402, body: { error: 'payment_session_expired' } })
  const sent = await sendWith(agent, alice, { 'x-payment-session': session.session_id })
  expect(sent).toMatchObject({ status: 402, body: { error: 'payment_session_expired' } })
})

test('a refused payment leaves the session open; a repeated payment receives the same answer; another payment is refused', async () => {
  await using agent = await paidAgent()
  const session = await start(agent, agent.caller('alice'))
  const pay = (body: object) => ask(undefined, session.capture_url, body)
  expect((await pay({})).body).toMatchObject({ error: 'payment_required', accepts: [requirementsInBody] })
  expect((await pay({ x402Version: 9 })).body).toMatchObject({ error: 'invalid_x402_version' })
  expect((await pay(await wallet.pay({ amount: '1' }))).status).toBe(402)
  const good = await wallet.pay()
  const forged = { ...good, payload: { ...good.payload, signature: `0x${'1'.repeat(128)}1b` } }
  expect((await pay(forged)).body).toMatchObject({ error: 'invalid_exact_evm_signature' })
  expect((await pay(good)).body).toMatchObject({ session: { status: 'completed' } })
  expect((await pay(good)).body).toMatchObject({ session: { status: 'completed' } })
  expect((await pay(await wallet.pay())).body).toMatchObject({ error: 'payment_session_spent' })
})

test('exactly one of ten concurrent payments for one session is accepted', async () => {
  await using agent = await paidAgent()
  const session = await start(agent, agent.caller('alice'))
  const bodies = await Promise.all(Array.from({ length: 10 }, () => wallet.pay()))
  await Promise.all(bodies.map((body) => ask(undefined, session.capture_url, body)))
  const counts = await agent.app.services.store.payments.countPaymentsByState()
  expect(counts).toEqual({ settled: 1 })
  const nonces = bodies.map(({ payload }) => payload.authorization['nonce'] ?? '')
  const key = (nonce: string) =>
    `eip155:84532 ${price.asset} ${wallet.account.address} ${nonce}`.toLowerCase()
  const moved = await Promise.all(
    nonces.map((nonce) => agent.app.services.store.payments.findTestTransfer(key(nonce))),
  )
  expect(moved.filter(Boolean)).toHaveLength(1)
})

test('capture_url uses the configured public address and does not change with the port of the agent', async () => {
  const env = { CAPTURE_BASE_URL: 'https://parley.example/agents/paid/' }
  await using agent = await testAgent({ handle: ({ text }) => text, executionCost: price }, { env })
  const alice = agent.caller('alice')
  const session = await start(agent, alice)
  expect(session.capture_url).toMatch(/^https:\/\/parley\.example\/agents\/paid\/pay\/[\w-]{32}$/)
  const shown = await status(agent, alice, session.session_id)
  expect(shown.body.capture_url).toBe(session.capture_url)
})

test('an unknown capture URL receives 404', async () => {
  await using agent = await paidAgent()
  expect((await ask(undefined, `${agent.url}/pay/${'x'.repeat(32)}`, {})).status).toBe(404)
})

test('a session can be started for a skill with a price, but not for skills and tasks that cannot be paid', async () => {
  const skill = (id: string, amount: string) => ({
    id,
    name: id,
    description: id,
    executionCost: { ...price, amount },
  })
  await using agent = await testAgent({
    handle: () => 'done',
    skills: [skill('cheap', '0.01'), skill('dear', '5')],
  })
  const alice = agent.caller('alice')
  expect(await start(agent, alice, { skill_id: 'dear' })).toMatchObject({ amount: '5' })
  const cheap = await start(agent, alice, { skill_id: 'cheap' })
  await ask(undefined, cheap.capture_url, await wallet.pay())
  const headers = { 'x-payment-session': cheap.session_id }
  // A session without a skill has the highest price.
  for (const metadata of [{ skill_id: 'dear' }, {}])
    expect((await sendWith(agent, alice, headers, metadata)).body).toMatchObject({
      error: 'payment_session_mismatch',
    })
  expect((await sendWith(agent, alice, headers, { skill_id: 'cheap' })).status).toBe(200)
  const url = `${agent.url}/api/start-payment-session`
  expect((await ask(alice, url, { skill_id: 'none' })).body.error.code).toBe(-32030)
  expect((await ask(alice, url, { task_id: randomUUID() })).body.error.code).toBe(-32001)
  expect((await ask(alice, url, { network: 'eip155:1' })).body.error.code).toBe(-32602)
})

test('one caller may have 10,000 open sessions, and the next session is refused', async () => {
  await using agent = await paidAgent()
  const { payments } = agent.app.services
  if (payments === undefined) throw new Error('no payments')
  const all = Array.from({ length: 10_000 }, () =>
    payments.sessions.start('alice', { ...price, atomic: '10000', decimals: 6, extra: requirements.extra }),
  )
  await Promise.all(all)
  const url = `${agent.url}/api/start-payment-session`
  expect(await ask(agent.caller('alice'), url, {})).toMatchObject({
    status: 429,
    body: { error: { code: -32041 } },
  })
  expect((await ask(agent.caller('bob'), url, {})).status).toBe(200)
}, 60_000)

test('a late verification for a session that another transfer has claimed does not settle that transfer', async () => {
  await using agent = await paidAgent()
  const session = await start(agent, agent.caller('alice'))
  const { store, payments } = agent.app.services
  if (payments === undefined) throw new Error('no payments')
  const { ledger } = payments
  const changeIfUnmodified = ledger.changeIfUnmodified.bind(ledger)
  const other = await wallet.pay()
  ledger.changeIfUnmodified = async (known, change) => {
    ledger.changeIfUnmodified = changeIfUnmodified
    // The watch assumed that the process of the first payment had died.
    const open = (await changeIfUnmodified(known, { kind: 'release' })) ?? known
    const transfer = other.payload as unknown as SignedTransfer
    await ledger.change(open, {
      kind: 'claim',
      transfer,
      nonceKey: nonceKeyOf(known.terms, transfer.authorization),
    })
    return changeIfUnmodified(known, change)
  }
  const paid = await ask(undefined, session.capture_url, await wallet.pay())
  expect(paid).toMatchObject({ status: 402 })
  const row = await store.payments.loadPayment(session.session_id)
  expect(row).toMatchObject({ state: 'claimed', transfer: other.payload })
})
