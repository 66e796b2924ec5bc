import { setTimeout as delay } from 'node:timers/promises'
import { expirePauses } from '@parley/engine/tasks/expiry'
import { A2aPayer } from '@parley/tools/testing/a2a-payer'
import { encoded, price, requirementsInBody, TestFacilitator } from '@parley/tools/testing/paid-agent'
import { describe, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'
import { unpaidMax } from '../methods/unpaid-task.ts'

interface Given {
  options?: Parameters<typeof testAgent>[1]
  runs?: string[]
  handle?: Parameters<typeof testAgent>[0]['handle']
  amount?: string
}

const paidAgent = ({ options = {}, runs = [], handle, amount = '0.01' }: Given = {}) =>
  testAgent(
    {
      executionCost: { ...price, amount },
      handle:
        handle ??
        (({ text, history }) => {
          runs.push(text)
          return `${history.length}: ${text.toUpperCase()}`
        }),
    },
    options,
  )

const statesOf = (agent: TestAgent) => agent.app.services.store.payments.countPaymentsByState()
const receipt = (wallet: A2aPayer['wallet']) => ({
  success: true,
  transaction: expect.stringMatching(/^0x[\da-f]{64}$/),
  network: 'base-sepolia',
  payer: wallet.account.address,
})
const [status, required, receipts, error] = ['status', 'required', 'receipts', 'error'].map(
  (name) => `x402.payment.${name}`,
) as [string, string, string, string]

describe.each(['1.0', '0.3'] as const)('A2A %s', (version) => {
  const payerOf = (agent: TestAgent, name = 'alice') => new A2aPayer(agent, agent.caller(name).token, version)

  test('an unpaid message becomes a task that waits for its price; a message with the payment runs it once', async () => {
    const runs: string[] = []
    await using agent = await paidAgent({ runs })
    const alice = payerOf(agent)
    const asked = await alice.send('hello')
    expect(asked.status).toBe(200)
    expect(asked.task).toMatchObject({
      state: 'input-required',
      text: expect.stringContaining('must be paid'),
      metadata: {
        [status]: 'payment-required',
        [required]: {
          x402Version: 1,
          error: 'payment_required',
          accepts: [requirementsInBody],
          sandbox: true,
        },
      },
    })
    expect(asked.task.metadata).not.toHaveProperty([receipts])
    expect(runs).toEqual([])
    expect(await statesOf(agent)).toEqual({})
    const { task } = await alice.pay(asked.task.id)
    expect(task).toMatchObject({
      id: asked.task.id,
      state: 'completed',
      metadata: { [status]: 'payment-completed', [receipts]: [receipt(alice.wallet)] },
      artifacts: [{ parts: [{ text: '1: HELLO' }] }],
    })
    expect(task.metadata).not.toHaveProperty([required])
    expect((await alice.get(task.id)).task.metadata).toEqual(task.metadata)
    expect(JSON.stringify(await alice.get(task.id))).not.toContain('x402.payment.payload')
    await expect.poll(() => statesOf(agent)).toEqual({ earned: 1 })
    expect(runs).toEqual(['hello'])
  })

  test('a repeated payment message returns the task and is not charged again', async () => {
    const runs: string[] = []
    await using agent = await paidAgent({ runs })
    const alice = payerOf(agent)
    const { id } = (await alice.send('hello')).task
    const payment = await alice.payment()
    const both = await Promise.all([alice.pay(id, payment), alice.pay(id, payment), alice.pay(id)])
    const paid = both.filter(({ task }) => task.id === id)
    expect(paid.length).toBeGreaterThan(0)
    expect((await alice.get(id)).task.state).toBe('completed')
    await expect.poll(() => statesOf(agent)).toEqual({ earned: 1 })
    const next = (await alice.send('again')).task.id
    const nextPayment = await alice.payment()
    const { task } = await alice.pay(next, nextPayment)
    expect(task.state).toBe('completed')
    expect((await alice.pay(next, nextPayment)).task).toEqual(task)
    expect((await alice.pay(next)).error).toBeDefined()
    await expect.poll(() => statesOf(agent)).toEqual({ earned: 2 })
    expect(runs).toEqual(['hello', 'again'])
  })

  test('a refused payment leaves the task waiting, with a code, a failed receipt and the terms', async () => {
    await using agent = await paidAgent()
    const alice = payerOf(agent)
    const { id } = (await alice.send('hello')).task
    const cases: [unknown, string][] = [
      [await alice.payment('9999'), 'INVALID_AMOUNT'],
      [await alice.wallet.pay({ network: 'eip155:8453' }), 'NETWORK_MISMATCH'],
      [await alice.wallet.payWith({ validBefore: '5' }), 'EXPIRED_PAYMENT'],
      [{ x402Version: 2 }, 'INVALID_PAYLOAD'],
      ['x', 'INVALID_PAYLOAD'],
    ]
    for (const [payment, code] of cases) {
      const { task } = await alice.pay(id, payment)
      expect(task).toMatchObject({
        id,
        state: 'input-required',
        metadata: {
          [status]: 'payment-failed',
          [error]: code,
          [required]: { accepts: [requirementsInBody] },
        },
      })
      const last = (task.metadata[receipts] as object[]).at(-1)
      expect(last).toMatchObject({ success: false, transaction: '', network: 'base-sepolia' })
      expect((await alice.get(id)).task).toEqual(task)
    }
    for (let count = 0; count < 10; count += 1) await alice.pay(id, 'x')
    const without = await alice.send('and now?', { taskId: id })
    expect(without.task).toMatchObject({ id, state: 'input-required', history: [{}] })
    const { task } = await alice.pay(id)
    expect(task).toMatchObject({ state: 'completed', metadata: { [status]: 'payment-completed' } })
    const outcomes = [...Array.from({ length: 10 }, () => ({ success: false })), { success: true }]
    expect(task.metadata[receipts]).toMatchObject(outcomes)
    expect(task.metadata).not.toHaveProperty([error])
  })

  test('a payment of another task is refused as a repeated nonce', async () => {
    await using agent = await paidAgent()
    const alice = payerOf(agent)
    const payment = await alice.payment()
    const first = (await alice.send('a')).task.id
    await alice.pay(first, payment)
    const second = (await alice.send('b')).task.id
    expect((await alice.pay(second, payment)).task.metadata).toMatchObject({
      [status]: 'payment-failed',
      [error]: 'DUPLICATE_NONCE',
    })
  })

  test('a message that rejects the payment ends the task', async () => {
    await using agent = await paidAgent()
    const alice = payerOf(agent)
    const { id } = (await alice.send('hello')).task
    const reject = { taskId: id, metadata: { [status]: 'payment-rejected' } }
    const { task } = await alice.send('no', reject)
    expect(task).toMatchObject({ state: 'rejected', metadata: { [status]: 'payment-rejected' } })
    expect((await alice.pay(id)).error?.code).toBe(-32004)
    expect(await statesOf(agent)).toEqual({})
  })

  test('a payment of x402 version 1 whose times are numbers is accepted', async () => {
    await using agent = await paidAgent()
    const alice = payerOf(agent)
    const { id } = (await alice.send('hello')).task
    const { payload } = await alice.payment()
    const { authorization } = payload
    const times = {
      validAfter: Number(authorization['validAfter']),
      validBefore: Number(authorization['validBefore']),
    }
    const payment = {
      x402Version: 1,
      scheme: 'exact',
      network: 'base-sepolia',
      payload: { ...payload, authorization: { ...authorization, ...times } },
    }
    expect((await alice.pay(id, payment)).task.state).toBe('completed')
  })

  test('the payment may be in the first message or in a header', async () => {
    await using agent = await paidAgent()
    const alice = payerOf(agent)
    const submitted = { [status]: 'payment-submitted', 'x402.payment.payload': await alice.payment() }
    const first = await alice.send('hello', { metadata: submitted })
    expect(first.task).toMatchObject({ state: 'completed', metadata: { [status]: 'payment-completed' } })
    expect(JSON.stringify(await alice.get(first.task.id))).not.toContain('x402.payment.payload')
    const header = await alice.send('hello', {}, { 'x-payment': encoded(await alice.payment()) })
    expect(header.task).toMatchObject({ state: 'completed', metadata: { [receipts]: [{ success: true }] } })
    expect(header.headers.get('x-payment-response')).not.toBeNull()
    const unpaid = await alice.send('hello')
    expect(unpaid.headers.get('payment-required')).not.toBeNull()
    const wrong = await alice.send('hello', {}, { 'x-payment': encoded(await alice.payment('1')) })
    expect(wrong.task).toMatchObject({ state: 'input-required', metadata: { [error]: 'INVALID_AMOUNT' } })
    const later = { taskId: wrong.task.id }
    const paid = await alice.send('x', later, { 'x-payment': encoded(await alice.payment()) })
    expect(paid.task).toMatchObject({ state: 'completed', artifacts: [{ parts: [{ text: '1: HELLO' }] }] })
  })

  test('a payment during a task: the message that pays continues it, and all receipts are kept', async () => {
    await using agent = await paidAgent({
      handle: ({ text, history, requirePayment }) =>
        history.length === 1 ? requirePayment({ amount: '0.05', reason: 'page two' }) : `two: ${text}`,
    })
    const alice = payerOf(agent)
    const { id } = (await alice.send('hello')).task
    const { task: paused } = await alice.pay(id)
    expect(paused).toMatchObject({
      state: 'input-required',
      text: 'page two',
      metadata: {
        [status]: 'payment-required',
        [required]: { accepts: [{ maxAmountRequired: '50000' }] },
        [receipts]: [{ success: true }],
      },
    })
    expect((await alice.pay(id, await alice.payment('49999'))).task.metadata[error]).toBe('INVALID_AMOUNT')
    const { task } = await alice.pay(id, await alice.payment('50000'))
    expect(task).toMatchObject({ state: 'completed', metadata: { [status]: 'payment-completed' } })
    expect(task.metadata[receipts]).toMatchObject([{ success: true }, { success: false }, { success: true }])
    expect(task.artifacts).toMatchObject([{ parts: [{ text: 'two: Here is the payment' }] }])
    expect(JSON.stringify(task)).not.toContain('x402.payment.payload')
  })

  test('metadata answers a bid', async () => {
    await using agent = await paidAgent({
      amount: '0',
      handle: ({ history, bid }) => (history.length === 1 ? bid({ amount: '1' }) : 'done'),
    })
    const alice = payerOf(agent)
    const bids = [(await alice.send('a')).task, (await alice.send('b')).task]
    expect(bids[0]).toMatchObject({
      state: 'input-required',
      metadata: { 'parley.negotiation.status': 'bid-submitted' },
    })
    const answers = ['bid-accepted', 'bid-rejected'].map((answer, at) =>
      alice.send('x', { taskId: bids[at]?.id, metadata: { 'parley.negotiation.status': answer } }),
    )
    const ended = await Promise.all(answers)
    expect(ended.map(({ task }) => task.state)).toEqual(['completed', 'rejected'])
  })

  test('an uncertain settlement holds the task; once it fails, the task waits for another payment', async () => {
    await using facilitator = await TestFacilitator.start()
    const outcome = Promise.withResolvers<{ json: object }>()
    facilitator.settle = () => outcome.promise
    await using agent = await paidAgent({
      options: {
        env: { PAYMENT_FACILITATOR_URL: facilitator.url },
        paymentTiming: { decideTimeoutMs: 100, settleTimeoutMs: 20_000, reconcileIntervalMs: 50 },
      },
    })
    const alice = payerOf(agent)
    const { id } = (await alice.send('hello')).task
    const paying = alice.pay(id)
    const held = () => alice.get(id).then(({ task }) => task.metadata[status])
    await expect.poll(held).toBe('payment-verified')
    outcome.resolve({
      json: { success: false, errorReason: 'insufficient_funds', transaction: '', network: '' },
    })
    const { task } = await paying
    expect(task).toMatchObject({
      state: 'input-required',
      metadata: { [status]: 'payment-failed', [error]: 'INSUFFICIENT_FUNDS', [required]: { accepts: [{}] } },
    })
    facilitator.settle = (nonce) => facilitator.move(nonce)
    expect((await alice.pay(id)).task).toMatchObject({
      state: 'completed',
      artifacts: [{ parts: [{ text: '1: HELLO' }] }],
    })
    expect(facilitator.moved.size).toBe(1)
  })

  test('a facilitator that cannot verify leaves the task unpaid, and the same payment can be sent again', async () => {
    await using facilitator = await TestFacilitator.start()
    facilitator.verify = () => ({ status: 500 })
    await using agent = await paidAgent({ options: { env: { PAYMENT_FACILITATOR_URL: facilitator.url } } })
    const alice = payerOf(agent)
    const { id } = (await alice.send('hello')).task
    const payment = await alice.payment()
    expect((await alice.pay(id, payment)).status).toBe(503)
    expect((await alice.get(id)).task.metadata).toMatchObject({ [status]: 'payment-required' })
    facilitator.verify = () => ({ json: { isValid: true } })
    expect((await alice.pay(id, payment)).task.state).toBe('completed')
  })

  test('unpaid tasks expire after an hour, and a caller has a limited number of them', async () => {
    const runs: string[] = []
    await using agent = await paidAgent({ runs })
    const [alice, bob] = [payerOf(agent), payerOf(agent, 'bob')]
    const { id } = (await alice.send('hello')).task
    const { engine, scheduler } = agent.app.services
    const before = scheduler.waiting
    for (let count = 1; count < unpaidMax; count += 1) await alice.send('more')
    expect(scheduler.waiting).toBe(before)
    const refused = await alice.send('one too many')
    expect(refused.status).toBe(429)
    expect(refused.error?.message).toContain('wait for a payment')
    expect((await bob.send('hello')).task.state).toBe('input-required')
    const early = Date.now() + 59 * 60_000
    await expirePauses(engine, early)
    expect((await alice.get(id)).task.state).toBe('input-required')
    await expirePauses(engine, early + 2 * 60_000)
    expect((await alice.get(id)).task).toMatchObject({
      state: 'failed',
      text: expect.stringContaining('hour'),
    })
    expect((await alice.send('again')).task.state).toBe('input-required')
    await delay(50)
    expect(runs).toEqual([])
  })

  test('data that the skill refuses, and tasks of other callers, cannot be paid', async () => {
    await using agent = await paidAgent()
    const { id } = (await payerOf(agent).send('hello')).task
    const mallory = payerOf(agent, 'mallory')
    expect((await mallory.pay(id)).error?.code).toBe(-32001)
    expect(await statesOf(agent)).toEqual({})
  })
})

test('a free agent keeps the payment in a message, because its handler may call a paid agent', async () => {
  await using agent = await testAgent({ handle: ({ message }) => JSON.stringify(message.metadata) })
  const alice = new A2aPayer(agent, agent.caller('alice').token, '1.0')
  const { task } = await alice.send('hello', { metadata: { 'x402.payment.payload': { x: 1 } } })
  expect(task.artifacts[0]?.parts[0]?.text).toBe('{"x402.payment.payload":{"x":1}}')
})

test("a client of Parley's dialect can pay a task that waits for its price", async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const payer = new A2aPayer(agent, alice.token, '1.0')
  const { id } = (await payer.send('hello')).task
  const task = await alice.get(id)
  expect(task.status).toMatchObject({ state: 'payment-required' })
  expect(task.status.message?.parts[1]).toMatchObject({ kind: 'data', data: { amount: '0.01' } })
  const unpaid = await alice
    .send({ text: 'x', taskId: id })
    .catch((thrown: { status: number }) => thrown.status)
  expect(unpaid).toBe(402)
  await alice.send({ text: 'x', taskId: id }, undefined, { headers: await payer.wallet.header() })
  expect((await alice.wait(id)).artifacts[0]?.parts[0]).toMatchObject({ text: '1: HELLO' })
})

const uris = [
  'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2',
  'https://github.com/google-a2a/a2a-x402/v0.1',
]

test('the card lists the extension, and answers repeat its URIs if the client activates them', async () => {
  await using agent = await paidAgent()
  for (const version of ['1.0', '0.3'] as const) {
    const alice = new A2aPayer(agent, agent.caller('alice').token, version)
    const { headers } = await alice.send('hello', {}, { 'x-a2a-extensions': uris.join(', ') })
    expect(headers.get(version === '1.0' ? 'a2a-extensions' : 'x-a2a-extensions')).toBe(uris.join(', '))
  }
})

test.each<[string, Parameters<typeof testAgent>[0], (boolean | undefined)[]]>([
  ['an agent whose skills all cost', { handle: () => '', executionCost: price }, [true, undefined]],
  [
    'an agent with a free skill',
    {
      handle: () => '',
      skills: [
        { id: 'a', name: 'a', description: 'a', executionCost: price },
        { id: 'b', name: 'b', description: 'b' },
      ],
    },
    [undefined, undefined],
  ],
  [
    'an agent that asks for payments later',
    { handle: () => '', executionCost: { ...price, amount: '0' } },
    [undefined, undefined],
  ],
  ['a free agent', { handle: () => '' }, []],
])('the card of %s requires the extension only if every skill costs', async (_what, definition, required) => {
  await using agent = await testAgent(definition)
  for (const path of ['/a2a/v1', '/a2a/v0.3', '']) {
    const response = await fetch(`${agent.url}${path}/.well-known/agent-card.json`)
    const { capabilities } = (await response.json()) as {
      capabilities: { extensions: { uri: string; required?: boolean }[] }
    }
    const listed = capabilities.extensions.filter(({ uri }) => uris.includes(uri))
    expect(listed.map((one) => one.required)).toEqual(required)
  }
})
