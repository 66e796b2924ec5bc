import { setTimeout as delay } from 'node:timers/promises'
import { testAgent } from '@parley/agent/testing'
import { makeLog } from '@parley/kit/process/log'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { samplePayment } from '../../store/store-payments.cases.ts'
import type { Facilitator, LookupResult } from '../facilitators/facilitator.ts'
import { SandboxFacilitator } from '../facilitators/sandbox.ts'
import { Payments } from '../payments.ts'

test('when several processes share a store, only one looks up an unknown settlement and settles it', async () => {
  await using agent = await testAgent({ handle: () => 'done' })
  const store = agent.app.services.store.payments
  const calls = { lookUp: 0, settle: 0 }
  const transaction = `0x${'a'.repeat(64)}`
  const facilitator: Facilitator = {
    sandbox: false,
    verify: async () => ({ valid: true }),
    settle: async ({ transfer }) => {
      calls.settle += 1
      return { state: 'settled', txHash: transaction, payer: transfer.authorization.from }
    },
    lookUp: async () => {
      calls.lookUp += 1
      await delay(200)
      return { state: 'open' }
    },
    [Symbol.asyncDispose]: async () => {},
  }
  const authorization = {
    from: `0x${'1'.repeat(40)}`,
    to: `0x${'2'.repeat(40)}`,
    value: '1',
    validAfter: '0',
    validBefore: '1',
    nonce: '0x',
  }
  const row = samplePayment({
    state: 'unknown',
    kind: 'session',
    sandbox: false,
    nonceKey: 'n',
    transfer: { signature: '0x', authorization },
    dueAt: Date.now(),
  })
  await store.addPayment(row)
  const tasks = {
    onSettled: async () => {},
    onFailed: async () => {},
    outcomeOf: async () => 'none' as const,
  }
  const log = makeLog({ level: 'silent', name: 'test' })
  await using stack = new AsyncDisposableStack()
  for (let process = 0; process < 5; process += 1) {
    const parts = { store, facilitator, tasks, log, agentId: 'a', shared: true, reconcileIntervalMs: 20 }
    stack.use(new Payments({ ...parts, registry: new Registry() })).start()
  }
  const settled = async () => (await store.loadPayment(row.id))?.txHash
  await expect.poll(settled).toBe(transaction)
  expect(calls).toEqual({ lookUp: 1, settle: 1 })
})

test('does not orphan a payment that is reconciled while its task starts', async () => {
  await using agent = await testAgent({ handle: () => 'done' })
  const store = agent.app.services.store.payments
  const row = samplePayment({ state: 'spent', taskId: 't', txHash: '0x1', dueAt: Date.now() })
  await store.addPayment(row)
  const stillPaid: boolean[] = []
  const tasks = {
    onSettled: async () => {},
    onFailed: async () => {},
    outcomeOf: async () => {
      stillPaid.push(await payments.isStillPaid('t', [row.id]))
      return 'none' as const
    },
  }
  const facilitator = new SandboxFacilitator(store)
  const log = makeLog({ level: 'silent', name: 'test' })
  const parts = { store, facilitator, tasks, log, agentId: 'a', shared: false }
  await using payments: Payments = new Payments({ ...parts, registry: new Registry() })
  await payments.recover()
  expect(stillPaid).toEqual([true])
  expect((await store.loadPayment(row.id))?.state).toBe('spent')
})

test('an unresponsive facilitator delays only its own payments', async () => {
  await using agent = await testAgent({ handle: () => 'done' })
  const store = agent.app.services.store.payments
  const hanging = Promise.withResolvers<LookupResult>()
  const facilitator = new SandboxFacilitator(store)
  facilitator.lookUp = () => hanging.promise
  const authorization = { from: '0x', to: '0x', value: '1', validAfter: '0', validBefore: '1', nonce: '0x' }
  for (let at = 1; at <= 120; at += 1) {
    const transfer = { signature: '0x', authorization }
    await store.addPayment(samplePayment({ state: 'unknown', nonceKey: `${at}`, transfer, dueAt: at }))
  }
  const session = samplePayment({ state: 'open', kind: 'session', expiresAt: 1000, dueAt: 1000 })
  await store.addPayment(session)
  const tasks = {
    onSettled: async () => {},
    onFailed: async () => {},
    outcomeOf: async () => 'none' as const,
  }
  const log = makeLog({ level: 'silent', name: 'test' })
  const parts = { store, facilitator, tasks, log, agentId: 'a', shared: false, reconcileIntervalMs: 20 }
  await using payments = new Payments({ ...parts, registry: new Registry() })
  payments.start()
  await expect.poll(async () => (await store.loadPayment(session.id))?.state).toBe('expired')
  hanging.resolve({ state: 'unknown', reason: 'timeout' })
})
