import type { RpcError } from '@parley/client/internal/rpc-error'
import { price, requirements, TestWallet } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import { testAgent } from '../../testing.ts'

const wallet = new TestWallet()
const freeAtFirst = { ...price, amount: '0' }

const asking = (amount = '0.05') =>
  testAgent({
    executionCost: freeAtFirst,
    handle: ({ text, history, requirePayment }) =>
      history.length === 1 ? requirePayment({ amount, reason: 'the second page' }) : `page two: ${text}`,
  })

test('requirePayment pauses in payment-required and reports amount and requirements in the stream and in the status', async () => {
  await using agent = await asking()
  const alice = agent.caller('alice')
  const events = []
  for await (const event of alice.stream('hello')) events.push(event)
  const last = events.at(-1)
  expect(last).toMatchObject({ status: { state: 'payment-required' }, final: false })
  const task = (await alice.list())[0]
  expect(task?.status.message?.parts).toEqual([
    { kind: 'text', text: 'the second page' },
    {
      kind: 'data',
      data: {
        amount: '0.05',
        reason: 'the second page',
        decimals: 6,
        accepts: [{ ...requirements, amount: '50000' }],
        sandbox: true,
      },
    },
  ])
})

test('a message without payment receives 402 and leaves the task paused; a message with payment continues it and pays once', async () => {
  await using agent = await asking()
  const alice = agent.caller('alice')
  const { id: taskId } = await alice.sendAndWait('hello')
  const refused = await alice.send({ text: 'go on', taskId }).catch((error: RpcError) => error.status)
  expect(refused).toBe(402)
  const wrong = await alice
    .send({ text: 'go on', taskId }, undefined, { headers: await wallet.header({ amount: '10000' }) })
    .catch((error: RpcError) => error.status)
  expect(wrong).toBe(402)
  expect((await alice.get(taskId)).status.state).toBe('payment-required')
  const headers = [await wallet.header({ amount: '50000' }), await wallet.header({ amount: '50000' })]
  const both = await Promise.allSettled(
    headers.map((header) => alice.send({ text: 'go on', taskId }, undefined, { headers: header })),
  )
  expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  const done = await alice.wait(taskId)
  expect(done.artifacts[0]?.parts[0]).toMatchObject({ text: 'page two: go on' })
  await expect.poll(() => agent.app.services.store.payments.countPaymentsByState()).toEqual({ earned: 1 })
})

test('a payment session can pay during a task', async () => {
  await using agent = await asking()
  const alice = agent.caller('alice')
  const { id: taskId } = await alice.sendAndWait('hello')
  const response = await fetch(`${agent.url}/api/start-payment-session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${alice.token}` },
    body: JSON.stringify({ task_id: taskId }),
  })
  const session = (await response.json()) as { session_id: string; amount: string; capture_url: string }
  expect(session.amount).toBe('0.05')
  const paid = await fetch(session.capture_url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(await wallet.pay({ amount: '50000' })),
  })
  expect(paid.status).toBe(200)
  await alice.send({ text: 'x', taskId, metadata: { payment_session_id: session.session_id } })
  expect((await alice.wait(taskId)).status.state).toBe('completed')
})

test('a paid task that pauses and continues is not charged again', async () => {
  await using agent = await testAgent({
    executionCost: price,
    handle: ({ history, ask }) => (history.length === 1 ? ask('Which?') : 'done'),
  })
  const alice = agent.caller('alice')
  const task = await alice.send('hello', undefined, { headers: await wallet.header() })
  expect((await alice.wait(task.id)).status.state).toBe('input-required')
  await alice.send({ text: 'this', taskId: task.id })
  expect((await alice.wait(task.id)).status.state).toBe('completed')
})

test('a free task cannot switch to a paid skill', async () => {
  const skill = (id: string) => ({ id, name: id, description: id })
  await using agent = await testAgent({
    skills: [skill('free'), { ...skill('paid'), executionCost: price }],
    handle: ({ history, ask, skillId }) => (history.length === 1 ? ask('Which?') : `did ${skillId}`),
  })
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait({ text: 'a', metadata: { skill_id: 'free' } })
  const error = await alice
    .send({ text: 'b', taskId: task.id, metadata: { skill_id: 'paid' } })
    .catch((refusal: RpcError) => refusal.code)
  expect(error).toBe(-32602)
})

test.each(['0.0000001', 'much', '-1', '1e3'])(
  'a malformed amount (%s) fails the task with -32006',
  async (amount) => {
    await using agent = await asking(amount)
    const task = await agent.caller('alice').sendAndWait('hello')
    expect(task.status).toMatchObject({ state: 'failed' })
    expect(task.status.message?.parts.at(-1)).toMatchObject({ kind: 'data', data: { code: -32006 } })
  },
)

test('requirePayment in an agent without executionCost fails the task with that reason', async () => {
  await using agent = await testAgent({
    handle: ({ requirePayment }) => requirePayment({ amount: '1', reason: 'x' }),
  })
  const task = await agent.caller('alice').sendAndWait('hello')
  expect(task.status.state).toBe('failed')
})
