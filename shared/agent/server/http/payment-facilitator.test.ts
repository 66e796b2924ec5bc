import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { RpcError } from '@parley/client/internal/rpc-error'
import {
  type FacilitatorAnswer,
  price,
  requirements,
  TestFacilitator,
  TestWallet,
} from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

const wallet = new TestWallet()

interface Given {
  runs?: () => void
  handle?: Parameters<typeof testAgent>[0]['handle']
  dataDir?: string
  decideTimeoutMs?: number
}

function agentAt(
  facilitator: TestFacilitator,
  { runs, handle, dataDir, decideTimeoutMs = 300 }: Given = {},
): Promise<TestAgent> {
  return testAgent(
    {
      executionCost: price,
      handle:
        handle ??
        (() => {
          runs?.()
          return 'done'
        }),
    },
    {
      env: { PAYMENT_FACILITATOR_URL: facilitator.url },
      paymentTiming: {
        decideTimeoutMs,
        settleTimeoutMs: Math.max(2000, decideTimeoutMs),
        reconcileIntervalMs: 50,
      },
      ...(dataDir !== undefined && { dataDir }),
    },
  )
}

/** Long timeouts, for outcomes that are known from the first answer. */
const patient = { decideTimeoutMs: 40_000 }

const statesOf = (agent: TestAgent) => agent.app.services.store.payments.countPaymentsByState()

test('a facilitator settles payments without test money', async () => {
  await using facilitator = await TestFacilitator.start()
  await using agent = await agentAt(facilitator, patient)
  const alice = agent.caller('alice')
  const { result, headers } = await alice.request(
    'message/send',
    { message: { role: 'user', parts: [{ kind: 'text', text: 'x' }], messageId: randomUUID() } },
    { headers: await wallet.header() },
  )
  expect((await alice.wait((result as { id: string }).id)).status.state).toBe('completed')
  const receipt = JSON.parse(
    Buffer.from(headers.get('payment-response') ?? '', 'base64').toString(),
  ) as object
  expect(receipt).toMatchObject({ success: true, transaction: [...facilitator.moved.values()][0] })
  expect(receipt).not.toHaveProperty('extra')
  expect(facilitator.settleCalls).toHaveLength(1)
})

test.each<[string, FacilitatorAnswer, number]>([
  ['says no', { json: { isValid: false, invalidReason: 'invalid_exact_evm_insufficient_balance' } }, 402],
  ['says no with HTTP 400', { status: 400, json: { isValid: false, invalidReason: 'x' } }, 402],
  ['fails', { status: 500, json: {} }, 503],
  ['fails and says no', { status: 502, json: { isValid: false } }, 503],
  ['answers no JSON', { text: '<html>' }, 503],
  ['answers too much', { text: `"${'x'.repeat(100_000)}"` }, 503],
])(
  'if a facilitator %s during verification, nothing is settled and the same payment can be used again',
  async (_what, answer, status) => {
    await using facilitator = await TestFacilitator.start()
    await using agent = await agentAt(facilitator)
    const alice = agent.caller('alice')
    const headers = await wallet.header()
    facilitator.verify = () => answer
    expect(await alice.send('x', undefined, { headers }).catch((error: RpcError) => error.status)).toBe(
      status,
    )
    expect(facilitator.settleCalls).toEqual([])
    expect(await alice.list()).toEqual([])
    facilitator.verify = () => ({ json: { isValid: true } })
    await alice.send('x', undefined, { headers })
  },
)

test('a refused settlement receives 402, creates no task and fails the payment', async () => {
  await using facilitator = await TestFacilitator.start()
  await using agent = await agentAt(facilitator, patient)
  const alice = agent.caller('alice')
  facilitator.settle = () => ({
    json: { success: false, errorReason: 'insufficient_funds', transaction: '', network: '' },
  })
  const headers = await wallet.header()
  expect(await alice.send('x', undefined, { headers }).catch((error: RpcError) => error.status)).toBe(402)
  expect(await alice.list()).toEqual([])
  expect(await statesOf(agent)).toEqual({ failed: 1 })
})

test('/health reports not ready as soon as an agent that stops during a settlement refuses messages', async () => {
  await using facilitator = await TestFacilitator.start()
  const moved = Promise.withResolvers<void>()
  facilitator.settle = async (nonce) => {
    await moved.promise
    return facilitator.move(nonce)
  }
  await using agent = await agentAt(facilitator, patient)
  const alice = agent.caller('alice')
  const health = async () => {
    const response = await fetch(`${agent.url}/health`)
    return [response.status, await response.json()]
  }
  expect(await health()).toMatchObject([200, { ready: true, status: 'ok' }])
  const sent = alice.send('x', undefined, { headers: await wallet.header() })
  await expect.poll(() => facilitator.settleCalls).toHaveLength(1)
  const stopping = agent.app[Symbol.asyncDispose]()
  await expect(alice.send('more')).rejects.toMatchObject({ status: 503, data: { reason: 'draining' } })
  expect(await health()).toMatchObject([
    503,
    { ready: false, status: 'degraded', checks: { scheduler: 'ok' } },
  ])
  moved.resolve()
  expect((await sent).status.state).toBe('submitted')
  await stopping
})

const unclear: [string, (facilitator: TestFacilitator) => TestFacilitator['settle']][] = [
  [
    'late',
    (facilitator) => async (nonce) => {
      await delay(700)
      return facilitator.move(nonce)
    },
  ],
  [
    'never at first, though the money moved',
    (facilitator) => (nonce, earlier) => {
      const moved = facilitator.move(nonce)
      return earlier === 0 ? 'never' : moved
    },
  ],
  [
    'with 500 at first, though the money moved',
    (facilitator) => (nonce, earlier) => {
      const moved = facilitator.move(nonce)
      return earlier < 2 ? { status: 500, json: { success: false, errorReason: 'x' } } : moved
    },
  ],
  [
    'that it succeeded, without a transaction',
    (facilitator) => (nonce, earlier) =>
      earlier === 0
        ? { json: { success: true, transaction: '', network: requirements.network } }
        : facilitator.move(nonce),
  ],
  [
    'that it succeeded on another network',
    (facilitator) => (nonce, earlier) =>
      earlier === 0
        ? { json: { success: true, transaction: `0x${'1'.repeat(64)}`, network: 'eip155:1' } }
        : facilitator.move(nonce),
  ],
  [
    'that somebody else paid',
    (facilitator) => (nonce, earlier) => {
      const moved = facilitator.move(nonce)
      return earlier === 0 ? { json: { ...moved.json, payer: `0x${'3'.repeat(40)}` } } : moved
    },
  ],
  [
    'nonsense at first',
    (facilitator) => (nonce, earlier) => (earlier === 0 ? { text: 'ok' } : facilitator.move(nonce)),
  ],
  ...[
    'settle_exact_node_failure',
    'transaction_confirmation_timed_out',
    'duplicate_settlement',
    undefined,
  ].map((errorReason): (typeof unclear)[number] => [
    `that it failed for a reason that may have come after the sending: ${errorReason}`,
    (facilitator) => (nonce, earlier) => {
      const moved = facilitator.move(nonce)
      return earlier === 0 ? { json: { success: false, errorReason, transaction: '', network: '' } } : moved
    },
  ]),
  [
    'that it is pending',
    (facilitator) => (nonce, earlier) =>
      earlier === 0
        ? {
            json: {
              success: false,
              errorReason: 'settlement_pending',
              transaction: '0x1',
              network: requirements.network,
            },
          }
        : facilitator.move(nonce),
  ],
]

test.each(unclear)(
  'after an unclear answer from the facilitator (%s), the task waits, the payment settles once and the task runs once',
  async (_what, settle) => {
    await using facilitator = await TestFacilitator.start()
    let runs = 0
    await using agent = await agentAt(facilitator, { runs: () => (runs += 1) })
    const alice = agent.caller('alice')
    facilitator.settle = settle(facilitator)
    const headers = await wallet.header()
    const task = await alice.send('x', undefined, { headers })
    expect(task.status.state).toBe('submitted')
    // In the meantime, the same payment cannot be used again.
    expect(await alice.send('y', undefined, { headers }).catch((error: RpcError) => error.status)).toBe(402)
    expect((await alice.wait(task.id)).status.state).toBe('completed')
    await expect.poll(() => statesOf(agent)).toEqual({ earned: 1 })
    expect(runs).toBe(1)
    expect(facilitator.moved.size).toBe(1)
  },
)

test('an unknown outcome is never reported as failed, even if a refusal follows an unanswered attempt', async () => {
  await using facilitator = await TestFacilitator.start()
  await using agent = await agentAt(facilitator)
  const alice = agent.caller('alice')
  facilitator.settle = (_nonce, earlier) =>
    earlier === 0
      ? { status: 500 }
      : {
          json: {
            success: false,
            errorReason: 'invalid_exact_evm_nonce_already_used',
            transaction: '',
            network: '',
          },
        }
  const task = await alice.send('x', undefined, { headers: await wallet.header() })
  await expect.poll(() => facilitator.settleCalls.length).toBeGreaterThan(1)
  expect((await alice.get(task.id)).status.state).toBe('submitted')
  expect(await statesOf(agent)).toEqual({ unknown: 1 })
  // The operator has checked the chain.
  const operator = agent.caller('operator', 'agent:admin')
  const headers = { authorization: `Bearer ${operator.token}`, 'content-type': 'application/json' }
  const listed = (await (await fetch(`${agent.url}/payments?state=unknown`, { headers })).json()) as {
    payments: { payment_id: string }[]
  }
  const id = listed.payments[0]?.payment_id
  const body = JSON.stringify({ settled: true, tx_hash: `0x${'a'.repeat(64)}` })
  expect((await fetch(`${agent.url}/payments/${id}/decide`, { method: 'POST', headers, body })).status).toBe(
    200,
  )
  expect((await alice.wait(task.id)).status.state).toBe('completed')
})

test('a task ends with the reason if its payment fails; a task canceled earlier leaves an orphaned payment', async () => {
  await using facilitator = await TestFacilitator.start()
  await using agent = await agentAt(facilitator)
  const alice = agent.caller('alice')
  facilitator.settle = async () => {
    await delay(600)
    return { json: { success: false, errorReason: 'insufficient_funds', transaction: '', network: '' } }
  }
  const vain = await alice.send('x', undefined, { headers: await wallet.header() })
  expect((await alice.wait(vain.id)).status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: 'The payment failed: insufficient_funds.' }] },
  })
  facilitator.settle = async (nonce) => {
    await delay(600)
    return facilitator.move(nonce)
  }
  const canceled = await alice.send('x', undefined, { headers: await wallet.header() })
  await alice.cancel(canceled.id)
  await expect.poll(() => statesOf(agent)).toEqual({ failed: 1, orphaned: 1 })
})

test('a restart does not run a task with an unknown settlement, and checks the settlement', async () => {
  await using facilitator = await TestFacilitator.start()
  const { mkdtemp, rm } = await import('node:fs/promises')
  const { tmpdir } = await import('node:os')
  const dataDir = await mkdtemp(`${tmpdir()}/parley-payment-`)
  let runs = 0
  try {
    facilitator.settle = () => ({ status: 500 })
    const first = await agentAt(facilitator, { dataDir, runs: () => (runs += 1) })
    const task = await first.caller('alice').send('x', undefined, { headers: await wallet.header() })
    await first[Symbol.asyncDispose]()
    await using second = await agentAt(facilitator, { dataDir, runs: () => (runs += 1) })
    const alice = second.caller('alice')
    await delay(300)
    expect((await alice.get(task.id)).status.state).toBe('submitted')
    expect(runs).toBe(0)
    facilitator.settle = (nonce) => facilitator.move(nonce)
    expect((await alice.wait(task.id, { signal: AbortSignal.timeout(60_000) })).status.state).toBe(
      'completed',
    )
    expect(runs).toBe(1)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})

test('during a task, an unknown settlement keeps the task waiting, and a failed settlement requests payment again', async () => {
  await using facilitator = await TestFacilitator.start()
  await using agent = await agentAt(facilitator, {
    handle: ({ history, requirePayment }) =>
      history.length < 3 ? requirePayment({ amount: '0.01', reason: 'more' }) : 'done',
  })
  const alice = agent.caller('alice')
  const { id: taskId } = await alice.send('x', undefined, { headers: await wallet.header() })
  await alice.wait(taskId)
  facilitator.settle = async () => {
    await delay(600)
    return { json: { success: false, errorReason: 'insufficient_funds', transaction: '', network: '' } }
  }
  const waiting = await alice.send({ text: 'y', taskId }, undefined, { headers: await wallet.header() })
  expect(waiting.status.state).toBe('submitted')
  const asked = await alice.wait(taskId)
  expect(asked.status.state).toBe('payment-required')
  expect(asked.status.message?.parts[0]).toMatchObject({ text: 'The payment failed: insufficient_funds.' })
  facilitator.settle = (nonce) => facilitator.move(nonce)
  await alice.send({ text: 'z', taskId }, undefined, { headers: await wallet.header() })
  expect((await alice.wait(taskId)).status.state).toBe('completed')
})

test('earlier payments are not settled in test money after a switch to the sandbox, nor is test money accepted outside it', async () => {
  await using facilitator = await TestFacilitator.start()
  const { mkdtemp, rm } = await import('node:fs/promises')
  const { tmpdir } = await import('node:os')
  const dataDir = await mkdtemp(`${tmpdir()}/parley-payment-`)
  try {
    facilitator.settle = () => ({ status: 500 })
    const real = await agentAt(facilitator, { dataDir })
    const task = await real.caller('alice').send('x', undefined, { headers: await wallet.header() })
    await real[Symbol.asyncDispose]()
    const timing = { paymentTiming: { reconcileIntervalMs: 50 } }
    const sandbox = await testAgent({ executionCost: price, handle: () => 'done' }, { dataDir, ...timing })
    const alice = sandbox.caller('alice')
    const { payments } = sandbox.app.services.store
    const [row] = await payments.listOfTask(task.id)
    await expect.poll(async () => (await payments.loadPayment(row?.id ?? ''))?.attempts).toBeGreaterThan(2)
    expect(await statesOf(sandbox)).toEqual({ unknown: 1 })
    const headers = { authorization: `Bearer ${alice.token}` }
    const started = await fetch(`${sandbox.url}/api/start-payment-session`, { method: 'POST', headers })
    const session = (await started.json()) as { session_id: string; capture_url: string }
    await fetch(session.capture_url, { method: 'POST', headers: await wallet.header() })
    await sandbox[Symbol.asyncDispose]()
    await using again = await agentAt(facilitator, { dataDir })
    const sent = again
      .caller('alice')
      .send('x', undefined, { headers: { 'x-payment-session': session.session_id } })
    await expect(sent).rejects.toMatchObject({ status: 402 })
    expect(await statesOf(again)).toMatchObject({ settled: 1 })
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}, 60_000)
