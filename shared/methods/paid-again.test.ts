import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { ParleyError } from '../jsonrpc/errors.ts'
import { timestampOf } from '../protocol/timestamp.ts'
import { price, TestWallet } from '../testing/paid-agent.ts'
import { type TestAgent, testAgent } from '../testing/test-agent.ts'

const paidAgent = () => testAgent({ executionCost: price, handle: () => 'done' })
const wallet = new TestWallet()

async function request() {
  const headers = { ...(await wallet.header()), 'idempotency-key': randomUUID() }
  return { message: { text: 'x', messageId: randomUUID() }, headers }
}

/** The process that took the payment goes no further; the row is made as old as it will be when nobody goes on. */
async function abandon(agent: TestAgent) {
  const { engine, store } = agent.app.services
  const create = engine.create.bind(engine)
  const goOn = Promise.withResolvers<void>()
  engine.create = async (record) => {
    engine.create = create
    await goOn.promise
    return create(record)
  }
  const spent = async () => (await store.payments.listByState({ state: 'spent', limit: 10 })).items
  return {
    goOn: () => goOn.resolve(),
    paid: async () => {
      await expect.poll(async () => (await spent()).length).toBe(1)
      const [row] = await spent()
      if (row === undefined) throw new Error('no payment')
      const updatedAt = timestampOf((Date.now() - 6000) * 1000)
      await store.payments.commitPayment({ ...row, version: row.version + 1, updatedAt })
    },
  }
}

test('paid, and the process died before the task was there: the same request again has its task for the same payment', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const first = await abandon(agent)
  const { message, headers } = await request()
  const unanswered = alice.send(message, undefined, { headers })
  await first.paid()
  const task = await alice.send(message, undefined, { headers })
  expect((await alice.wait(task.id)).status.state).toBe('completed')
  // It was not dead, but slow: it finds the task, and leaves it its payment.
  first.goOn()
  expect((await unanswered).id).toBe(task.id)
  const { payments } = agent.app.services.store
  await expect.poll(() => payments.countPaymentsByState()).toEqual({ earned: 1 })
  expect(await alice.list()).toHaveLength(1)
})

test('another owner has nothing of a payment that was left behind', async () => {
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

test('a store that was cut off after the write keeps the payment with the task that may be there', async () => {
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
  // What paid for it buys nothing else.
  const other = {
    'payment-signature': headers['payment-signature' as never] ?? headers['x-payment' as never],
  }
  await expect(alice.send('y', undefined, { headers: other })).rejects.toMatchObject({ status: 402 })
})

test('a payment that another attempt let go of in between is not called used: it can be shown again', async () => {
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
