import { randomUUID } from 'node:crypto'
import type { RpcError } from '@parley/client/internal/rpc-error'
import { price, TestWallet } from '@parley/tools/testing/paid-agent'
import { ParleyError } from '@parley/wire/errors'
import { timestampOf } from '@parley/wire/model/timestamp'
import { expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

const paidAgent = () => testAgent({ executionCost: price, handle: () => 'done' })
const wallet = new TestWallet()

async function request() {
  const headers = { ...(await wallet.header()), 'idempotency-key': randomUUID() }
  return { message: { text: 'x', messageId: randomUUID() }, headers }
}

/** Makes the payment look old, as if its process had died. */
async function grownOld({ app }: TestAgent) {
  const { payments } = app.services.store
  const spent = async () => (await payments.listByState({ state: 'spent', limit: 10 })).items
  await expect.poll(async () => (await spent()).length).toBe(1)
  const [row] = await spent()
  if (row === undefined) throw new Error('no payment')
  // This changes only what readers receive; the row itself is unchanged.
  const updatedAt = timestampOf((Date.now() - 6000) * 1000)
  const find = payments.findByPurpose.bind(payments)
  payments.findByPurpose = async (purpose) => {
    const found = await find(purpose)
    return found?.version === row.version ? { ...found, updatedAt } : found
  }
}

/** Suspends the process that took the payment. Once released, it continues or runs the given function instead. */
async function abandon(agent: TestAgent, orElse?: () => never) {
  const { engine } = agent.app.services
  const create = engine.create.bind(engine)
  const goOn = Promise.withResolvers<void>()
  engine.create = async (record) => {
    engine.create = create
    await goOn.promise
    return orElse === undefined ? create(record) : orElse()
  }
  return { goOn: () => goOn.resolve(), paid: () => grownOld(agent) }
}

const paymentAlone = (headers: Record<string, string>) => ({ 'x-payment': headers['x-payment'] ?? '' })

test('after the process dies between payment and task, a repeated request receives a task for the same payment', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const first = await abandon(agent)
  const { message, headers } = await request()
  const unanswered = alice.send(message, undefined, { headers })
  await first.paid()
  const task = await alice.send(message, undefined, { headers })
  expect((await alice.wait(task.id)).status.state).toBe('completed')
  // The process was slow but alive. It finds the task and leaves the payment with it.
  first.goOn()
  expect((await unanswered).id).toBe(task.id)
  const { payments } = agent.app.services.store
  await expect.poll(() => payments.countPaymentsByState()).toEqual({ earned: 1 })
  expect(await alice.list()).toHaveLength(1)
})

test('another owner cannot use an abandoned payment', async () => {
  await using agent = await paidAgent()
  const first = await abandon(agent)
  const { message, headers } = await request()
  const unanswered = agent.caller('alice').send(message, undefined, { headers })
  await first.paid()
  const theirs = agent.caller('mallory').send(message, undefined, { headers })
  await expect(theirs).rejects.toMatchObject({ status: 402 })
  first.goOn()
  await unanswered
})

test('if the store disconnects after the write, the payment stays with the task that may be stored', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const { engine, store } = agent.app.services
  Object.defineProperty(store, 'exclusive', { value: false })
  const create = engine.create.bind(engine)
  engine.create = async (record) => {
    engine.create = create
    await create(record)
    throw new ParleyError('Unavailable')
  }
  const { message, headers } = await request()
  await expect(alice.send(message, undefined, { headers })).rejects.toMatchObject({ status: 503 })
  expect(await store.payments.countPaymentsByState()).toEqual({ spent: 1 })
  const again = await alice.send(message, undefined, { headers })
  expect(await alice.list()).toMatchObject([{ id: again.id }])
  // Its payment cannot be used again.
  const other = {
    'payment-signature': headers['payment-signature' as never] ?? headers['x-payment' as never],
  }
  await expect(alice.send('y', undefined, { headers: other })).rejects.toMatchObject({ status: 402 })
})

test('a payment that another attempt has released in the meantime is not reported as used', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const { payments } = agent.app.services.store
  const add = payments.addPayment.bind(payments)
  payments.addPayment = async () => {
    payments.addPayment = add
    return 'nonce'
  }
  const headers = await wallet.header()
  const refused = { status: 409, data: { reason: 'payment_in_progress' } }
  await expect(alice.send('x', undefined, { headers })).rejects.toMatchObject(refused)
  const task = await alice.send('x', undefined, { headers })
  expect((await alice.wait(task.id)).status.state).toBe('completed')
})

test('the payment stays with a successful repeated request if the first attempt is refused later', async () => {
  const handled = Promise.withResolvers<string>()
  await using agent = await testAgent({ executionCost: price, handle: () => handled.promise })
  const alice = agent.caller('alice')
  const { message, headers } = await request()
  const slow = await abandon(agent, () => {
    throw new ParleyError('Unavailable', { data: { reason: 'queue_full' } })
  })
  const unanswered = alice.send(message, undefined, { headers }).catch((error: RpcError) => error.status)
  await slow.paid()
  const task = await alice.send(message, undefined, { headers })
  slow.goOn()
  expect(await unanswered).toBe(503)
  const another = alice.send('another', undefined, { headers: paymentAlone(headers) })
  await expect(another).rejects.toMatchObject({ status: 402 })
  handled.resolve('done')
  expect((await alice.wait(task.id)).status.state).toBe('completed')
  const { payments } = agent.app.services.store
  await expect.poll(() => payments.countPaymentsByState()).toEqual({ earned: 1 })
})

test('after the attempt that took over a payment is refused, only the first attempt can still use the payment', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const { engine } = agent.app.services
  const { message, headers } = await request()
  const slow = await abandon(agent)
  const unanswered = alice.send(message, undefined, { headers })
  await slow.paid()
  const create = engine.create.bind(engine)
  engine.create = async () => {
    engine.create = create
    throw new ParleyError('InvalidParams')
  }
  await expect(alice.send(message, undefined, { headers })).rejects.toMatchObject({ status: 400 })
  const another = alice.send('another', undefined, { headers: paymentAlone(headers) })
  await expect(another).rejects.toMatchObject({ status: 402 })
  slow.goOn()
  expect((await alice.wait((await unanswered).id)).status.state).toBe('completed')
})

test('only one of several concurrent attempts to take over an abandoned payment succeeds', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const { message, headers } = await request()
  const slow = await abandon(agent)
  const unanswered = alice.send(message, undefined, { headers })
  await slow.paid()
  const again = await Promise.all([1, 2, 3, 4].map(() => alice.send(message, undefined, { headers })))
  slow.goOn()
  expect(new Set([...again, await unanswered].map(({ id }) => id)).size).toBe(1)
  expect(await alice.list()).toHaveLength(1)
  const { payments } = agent.app.services.store
  await expect.poll(() => payments.countPaymentsByState()).toEqual({ earned: 1 })
})

test('a paused task keeps its payment if a repetition of a slow message continues it', async () => {
  const handled = Promise.withResolvers<string>()
  await using agent = await testAgent({
    executionCost: { ...price, amount: '0' },
    handle: ({ history, requirePayment }) =>
      history.length === 1 ? requirePayment({ amount: '0.01', reason: 'more' }) : handled.promise,
  })
  const alice = agent.caller('alice')
  const { engine } = agent.app.services
  const { id: taskId } = await alice.sendAndWait('hello')
  const headers = await wallet.header()
  const change = engine.change.bind(engine)
  const goOn = Promise.withResolvers<void>()
  engine.change = async (...given) => {
    engine.change = change
    await goOn.promise
    return change(...given)
  }
  const slow = alice.send({ text: 'go on', taskId }, undefined, { headers }).catch((e: RpcError) => e.status)
  await grownOld(agent)
  await alice.send({ text: 'go on', taskId }, undefined, { headers })
  goOn.resolve()
  expect(await slow).toBe(400)
  expect(await agent.app.services.store.payments.countPaymentsByState()).toEqual({ spent: 1 })
  handled.resolve('done')
  expect((await alice.wait(taskId)).status.state).toBe('completed')
})
