import { randomUUID } from 'node:crypto'
import type { RpcError } from '@parley/client/internal/rpc-error'
import { price, TestFacilitator, TestWallet } from '@parley/tools/testing/paid-agent'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { testAgent } from '../../testing.ts'

const wallet = new TestWallet()
const status = (error: RpcError) => error.status

test('the agent refuses data that does not match the skill before payment', async () => {
  const input = z.object({ rows: z.number().int() })
  const skills = [{ id: 'a', name: 'a', description: 'a', input }]
  await using agent = await testAgent({ executionCost: price, skills, handle: () => 'done' })
  const alice = agent.caller('alice')
  const says = (data: object) => ({ parts: [{ kind: 'data' as const, data: data as never }] })
  for (const headers of [{}, await wallet.header()]) {
    const refused = await alice
      .send(says({ rows: 'x' }), undefined, { headers })
      .catch((error: RpcError) => error)
    expect(refused).toMatchObject({ code: -32602, status: 400 })
  }
  expect(await agent.app.services.store.payments.countPaymentsByState()).toEqual({})
  expect(await alice.list()).toEqual([])
  expect(await alice.send(says({ rows: 1 })).catch(status)).toBe(402)
  const paid = await alice.send(says({ rows: 1 }), undefined, { headers: await wallet.header() })
  expect((await alice.wait(paid.id)).status.state).toBe('completed')
})

test('a message that no longer matches the skill is not charged during a task either', async () => {
  const input = z.object({ rows: z.number().int() })
  const skills = [{ id: 'a', name: 'a', description: 'a', input, executionCost: { ...price, amount: '0' } }]
  await using agent = await testAgent({
    skills,
    handle: ({ history, requirePayment }) =>
      history.length < 3 ? requirePayment({ amount: '0.01', reason: 'more' }) : 'done',
  })
  const alice = agent.caller('alice')
  const says = (data: object, more = {}) => ({
    parts: [{ kind: 'data' as const, data: data as never }],
    ...more,
  })
  const { id: taskId } = await alice.sendAndWait(says({ rows: 1 }))
  const headers = await wallet.header()
  const refused = await alice
    .send(says({ rows: 'x' }, { taskId }), undefined, { headers })
    .catch((error: RpcError) => error)
  expect(refused).toMatchObject({ code: -32602 })
  expect((await alice.get(taskId)).status.state).toBe('payment-required')
  await alice.send(says({ rows: 2 }, { taskId }), undefined, { headers })
  expect((await alice.wait(taskId)).status.state).toBe('completed')
})

test('ten concurrent calls with one Idempotency-Key and one payment receive the same task', async () => {
  let runs = 0
  await using agent = await testAgent({ executionCost: price, handle: () => `run ${(runs += 1)}` })
  const alice = agent.caller('alice')
  for (let round = 0; round < 5; round += 1) {
    const headers = { ...(await wallet.header()), 'idempotency-key': randomUUID() }
    const message = { text: 'x', messageId: randomUUID() }
    const sends = Array.from({ length: 10 }, () => alice.send(message, undefined, { headers }))
    const tasks = await Promise.all(sends)
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(1)
    expect((await alice.wait(tasks[0]?.id ?? '')).status.state).toBe('completed')
  }
  expect(runs).toBe(5)
  await expect.poll(() => agent.app.services.store.payments.countPaymentsByState()).toEqual({ earned: 5 })
})

test('a task that waits for a failed payment ends, even if the failure was not reported when it happened', async () => {
  await using facilitator = await TestFacilitator.start()
  facilitator.settle = () => 'never'
  await using agent = await testAgent(
    { executionCost: price, handle: () => 'done' },
    {
      env: { PAYMENT_FACILITATOR_URL: facilitator.url },
      paymentTiming: { decideTimeoutMs: 100, settleTimeoutMs: 60_000, reconcileIntervalMs: 50 },
    },
  )
  const alice = agent.caller('alice')
  const task = await alice.send('x', undefined, { headers: await wallet.header() })
  expect(task.status.state).toBe('submitted')
  // This is the state after a process has died between writing the payment row and writing the task.
  const { payments } = agent.app.services.store
  const [row] = await payments.listOfTask(task.id)
  if (row === undefined) throw new Error('no payment')
  const failed = {
    ...row,
    state: 'failed' as const,
    reason: 'x',
    version: row.version + 1,
    dueAt: Date.now(),
  }
  expect(await payments.commitPayment(failed)).toBe('committed')
  const ended = await alice.wait(task.id, { signal: AbortSignal.timeout(60_000) })
  expect(ended.status.state).toBe('failed')
  await expect.poll(async () => (await payments.loadPayment(row.id))?.dueAt).toBeUndefined()
})

test('the webhook event for payment-required contains the amount and the requirements', async () => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await testAgent(
    {
      executionCost: { ...price, amount: '0' },
      handle: ({ history, requirePayment }) =>
        history.length < 3 ? requirePayment({ amount: '0.02', reason: 'the long report' }) : 'done',
    },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
  const alice = agent.caller('alice')
  const { id: taskId } = await alice.send('x', {
    push_notification_config: { id: randomUUID(), url: receiver.url },
  } as never)
  await alice.wait(taskId)
  const asked = () =>
    receiver.posts
      .map(({ event }) => event)
      .find((event) => event.kind === 'status-update' && event.status.state === 'payment-required')
  await expect.poll(asked).toMatchObject({
    kind: 'status-update',
    final: false,
    status: {
      message: {
        role: 'agent',
        parts: [
          { kind: 'text', text: 'the long report' },
          {
            kind: 'data',
            data: {
              amount: '0.02',
              reason: 'the long report',
              accepts: [{ amount: '20000' }],
              sandbox: true,
            },
          },
        ],
      },
    },
  })
  await alice.send({ text: 'y', taskId }, undefined, { headers: await wallet.header({ amount: '20000' }) })
  expect((await alice.wait(taskId)).status.state).toBe('completed')
})

test('listing, refunding and deciding in the ledger require agent:admin, or agent:ledger through the gateway', async () => {
  await using agent = await testAgent({ executionCost: price, handle: () => 'done' })
  const alice = agent.caller('alice', 'agent:read agent:write agent:execute')
  const [row] = await (async () => {
    const task = await alice.send('x', undefined, { headers: await wallet.header() })
    return agent.app.services.store.payments.listOfTask(task.id)
  })()
  const ways: [string, string][] = [
    ['GET', '/payments'],
    ['POST', `/payments/${row?.id}/refunded`],
    ['POST', `/payments/${row?.id}/decide`],
  ]
  const ask = async ([method, path]: [string, string], token?: string) => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return (await fetch(`${agent.url}${path}`, { method, headers })).status
  }
  for (const way of ways) {
    expect(await ask(way)).toBe(401)
    expect(await ask(way, alice.token)).toBe(403)
  }
  const elsewhere = agent.identityProvider.issue('operator', {
    scope: 'agent:admin',
    aud: 'https://another.example',
  } as never)
  expect(await ask(['GET', '/payments'], elsewhere)).toBe(401)
  const operator = agent.caller('operator', 'agent:admin')
  expect(await ask(['GET', '/payments'], operator.token)).toBe(200)
  const issue = (scope: string, act?: { sub: string }) =>
    agent.identityProvider.issue('operator', { scope, ...(act && { act }) })
  const act = { sub: 'https://gateway.example' }
  expect(await ask(['GET', '/payments'], issue('agent:ledger', act))).toBe(200)
  // The scope is valid only in tokens of the gateway, and such tokens have no other scope for the ledger.
  for (const token of [
    issue('agent:ledger'),
    issue('agent:ledger', { sub: 'did:parley:ann:agent:one' }),
    issue('agent:admin', act),
    issue('agent:execute', act),
  ])
    for (const way of ways) expect(await ask(way, token)).toBe(403)
})

test('an operator cannot mark a transfer as failed while it is still valid', async () => {
  await using facilitator = await TestFacilitator.start()
  facilitator.settle = () => ({ status: 500 })
  await using agent = await testAgent(
    { executionCost: price, handle: () => 'done' },
    {
      env: { PAYMENT_FACILITATOR_URL: facilitator.url },
      paymentTiming: { decideTimeoutMs: 100, settleTimeoutMs: 500, reconcileIntervalMs: 60_000 },
    },
  )
  const alice = agent.caller('alice')
  const task = await alice.send('x', undefined, { headers: await wallet.header() })
  const { payments } = agent.app.services.store
  const row = async () => (await payments.listOfTask(task.id))[0]
  await expect.poll(async () => (await row())?.state).toBe('unknown')
  const { token } = agent.caller('operator', 'agent:admin')
  const decide = async () => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ settled: false })
    const path = `/payments/${(await row())?.id}/decide`
    return (await fetch(`${agent.url}${path}`, { method: 'POST', headers, body })).status
  }
  expect([await decide(), (await row())?.state]).toEqual([409, 'unknown'])
  const now = await row()
  if (now?.transfer === undefined) throw new Error('no transfer')
  const { transfer } = now
  const over = { ...transfer, authorization: { ...transfer.authorization, validBefore: '1' } }
  await payments.commitPayment({ ...now, version: now.version + 1, transfer: over })
  expect([await decide(), (await row())?.state]).toEqual([200, 'failed'])
  expect((await alice.wait(task.id)).status.state).toBe('failed')
})

test('a late task completes even if its payment was already listed for refund, and nothing is refunded', async () => {
  const may = Promise.withResolvers<void>()
  await using agent = await testAgent({
    executionCost: price,
    handle: async () => {
      await may.promise
      return 'done'
    },
  })
  const alice = agent.caller('alice')
  const task = await alice.send('x', undefined, { headers: await wallet.header() })
  const { payments } = agent.app.services.store
  const row = (await payments.listOfTask(task.id))[0]
  if (row === undefined) throw new Error('no payment')
  const listed = { ...row, state: 'orphaned' as const, reason: 'no_task', version: row.version + 1 }
  expect(await payments.commitPayment(listed)).toBe('committed')
  may.resolve()
  expect((await alice.wait(task.id)).status.state).toBe('completed')
  await expect.poll(() => payments.countPaymentsByState()).toEqual({ earned: 1 })
})

test('clearing a context before the ledger has recorded the end of its task still earns the payment', async () => {
  await using agent = await testAgent({ executionCost: price, handle: () => 'done' })
  const alice = agent.caller('alice')
  const { payments } = agent.app.services
  const { store } = agent.app.services
  if (payments === undefined) throw new Error('no payments')
  payments.taskEnded = () => {}
  const task = await alice.send('x', undefined, { headers: await wallet.header() })
  expect((await alice.wait(task.id)).status.state).toBe('completed')
  await alice.call('contexts/clear', { context_id: task.context_id })
  expect(await store.payments.countPaymentsByState()).toEqual({ earned: 1 })
})
