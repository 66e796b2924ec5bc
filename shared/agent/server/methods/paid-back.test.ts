import { randomUUID } from 'node:crypto'
import type { PaymentRecord, PaymentState } from '@parley/engine/store/payment-store'
import { encoded, price, TestWallet } from '@parley/tools/testing/paid-agent'
import { ParleyError } from '@parley/wire/errors'
import { expect, test, vi } from 'vitest'
import { type TestAgent, type TestCaller, testAgent } from '../../testing.ts'

const wallet = new TestWallet()
const done = () => 'done'

const rowsIn = async ({ app }: TestAgent, state: PaymentState) =>
  (await app.services.store.payments.listByState({ state, limit: 10 })).items

/** Suspends the process that took the payment until it is released or dies. */
function standStill({ app }: TestAgent, thenDie = false) {
  const { engine } = app.services
  const create = engine.create.bind(engine)
  const goOn = Promise.withResolvers<void>()
  engine.create = async (record) => {
    engine.create = create
    await goOn.promise
    if (thenDie) throw new Error('killed')
    return create(record)
  }
  return () => goOn.resolve()
}

/** Returns the payment, which is listed for refund because its task was never created. */
async function listed(agent: TestAgent): Promise<PaymentRecord> {
  await expect.poll(async () => (await rowsIn(agent, 'spent')).length).toBe(1)
  const { payments } = agent.app.services
  const [row] = await rowsIn(agent, 'spent')
  if (row === undefined || payments === undefined) throw new Error('no payment')
  const orphaned = await payments.ledger.changeIfUnmodified(row, { kind: 'orphan', reason: 'no_task' })
  if (orphaned === undefined) throw new Error('not listed')
  return orphaned
}

async function payBack(agent: TestAgent, { id }: PaymentRecord): Promise<number> {
  const operator = agent.caller('operator', 'agent:admin')
  const headers = { authorization: `Bearer ${operator.token}`, 'content-type': 'application/json' }
  const response = await fetch(`${agent.url}/payments/${id}/refunded`, {
    method: 'POST',
    headers,
    body: '{}',
  })
  return response.status
}

test('a task does not run if its payment was refunded while its process hung before creating it', async () => {
  let runs = 0
  await using agent = await testAgent({
    executionCost: price,
    handle: () => {
      runs += 1
      return 'done'
    },
  })
  const alice = agent.caller('alice')
  const goOn = standStill(agent)
  const unanswered = alice.send('x', undefined, { headers: await wallet.header() })
  expect(await payBack(agent, await listed(agent))).toBe(200)
  goOn()
  const task = await alice.wait((await unanswered).id)
  expect(task.status).toMatchObject({ state: 'failed', message: { parts: [{ kind: 'text' }] } })
  expect(runs).toBe(0)
  expect(await agent.app.services.store.payments.countPaymentsByState()).toEqual({ refunded: 1 })
})

test('a payment listed for refund leaves the list when its task starts and is not refunded', async () => {
  const may = Promise.withResolvers<string>()
  await using agent = await testAgent({ executionCost: price, handle: () => may.promise })
  const alice = agent.caller('alice')
  const goOn = standStill(agent)
  const unanswered = alice.send('x', undefined, { headers: await wallet.header() })
  const payment = await listed(agent)
  goOn()
  const { id } = await unanswered
  await expect.poll(async () => (await rowsIn(agent, 'spent')).map(({ taskId }) => taskId)).toEqual([id])
  expect(await payBack(agent, payment)).toBe(409)
  may.resolve('done')
  expect((await alice.wait(id)).status.state).toBe('completed')
  await expect.poll(() => agent.app.services.store.payments.countPaymentsByState()).toEqual({ earned: 1 })
})

const byTransfer = () => wallet.header()
const bySession = async (agent: TestAgent, alice: TestCaller) => {
  const headers = { authorization: `Bearer ${alice.token}` }
  const started = await fetch(`${agent.url}/api/start-payment-session`, { method: 'POST', headers })
  const session = (await started.json()) as { session_id: string; capture_url: string }
  await fetch(session.capture_url, { method: 'POST', headers: await wallet.header() })
  return { 'x-payment-session': session.session_id }
}

test.each<[string, (agent: TestAgent, alice: TestCaller) => Promise<Record<string, string>>]>([
  ['a signed transfer', byTransfer],
  ['a session', bySession],
])(
  'a repeated request paid by %s receives its task even after the payment was listed for refund',
  async (_by, pay) => {
    await using agent = await testAgent({ executionCost: price, handle: done })
    const alice = agent.caller('alice')
    const headers = { ...(await pay(agent, alice)), 'idempotency-key': randomUUID() }
    const message = { text: 'x', messageId: randomUUID() }
    const die = standStill(agent, true)
    const dead = alice.send(message, undefined, { headers }).catch(() => {})
    await listed(agent)
    const theirs = agent.caller('mallory').send(message, undefined, { headers })
    await expect(theirs).rejects.toMatchObject({ status: 402 })
    const other = { ...headers, 'idempotency-key': randomUUID() }
    await expect(alice.send('y', undefined, { headers: other })).rejects.toMatchObject({ status: 402 })
    const task = await alice.send(message, undefined, { headers })
    expect((await alice.wait(task.id)).status.state).toBe('completed')
    await expect.poll(() => agent.app.services.store.payments.countPaymentsByState()).toEqual({ earned: 1 })
    expect(await alice.list()).toHaveLength(1)
    const metrics = await (await fetch(`${agent.url}/metrics`)).text()
    for (const state of ['orphaned', 'earned'])
      expect(metrics).toMatch(new RegExp(`agent_payments_total\\{[^}]*state="${state}"\\} 1`))
    die()
    await dead
  },
)

test('a repeated request receives no task for a refunded payment', async () => {
  await using agent = await testAgent({ executionCost: price, handle: done })
  const alice = agent.caller('alice')
  const headers = { ...(await wallet.header()), 'idempotency-key': randomUUID() }
  const message = { text: 'x', messageId: randomUUID() }
  const die = standStill(agent, true)
  const dead = alice.send(message, undefined, { headers }).catch(() => {})
  expect(await payBack(agent, await listed(agent))).toBe(200)
  await expect(alice.send(message, undefined, { headers })).rejects.toMatchObject({ status: 402 })
  expect(await alice.list()).toEqual([])
  die()
  await dead
})

test('a payment that was settled for a refused message pays for another task, even after its expiry', async () => {
  await using agent = await testAgent({ executionCost: price, handle: done })
  const alice = agent.caller('alice')
  const { engine, store } = agent.app.services
  const create = engine.create.bind(engine)
  engine.create = async () => {
    engine.create = create
    throw new ParleyError('InvalidParams')
  }
  const [header, never] = [encoded(await wallet.pay()), encoded(await wallet.pay())]
  const send = (payment = header) => alice.send('x', undefined, { headers: { 'x-payment': payment } })
  await expect(send()).rejects.toMatchObject({ status: 400 })
  expect(await store.payments.countPaymentsByState()).toEqual({ settled: 1 })
  const now = Date.now.bind(Date)
  using _later = vi.spyOn(Date, 'now').mockImplementation(() => now() + 600_000)
  await expect(send(never)).rejects.toMatchObject({ status: 402 })
  const theirs = agent.caller('mallory').send('x', undefined, { headers: { 'x-payment': header } })
  await expect(theirs).rejects.toMatchObject({ status: 402 })
  expect((await alice.wait((await send()).id)).status.state).toBe('completed')
  await expect(send()).rejects.toMatchObject({ status: 402 })
})
