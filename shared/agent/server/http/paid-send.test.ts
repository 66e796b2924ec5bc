import { randomUUID } from 'node:crypto'
import {
  decoded,
  encoded,
  price,
  requirements,
  requirementsInBody,
  TestWallet,
} from '@parley/tools/testing/paid-agent'
import { x402Client } from '@x402/core/client'
import { PaymentRequiredV1Schema } from '@x402/core/schemas'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { expect, test } from 'vitest'
import { type TestAgent, type TestCaller, testAgent } from '../../testing.ts'

const paidAgent = (
  options: Parameters<typeof testAgent>[1] = {},
  executionCost: Parameters<typeof testAgent>[0]['executionCost'] = price,
) => testAgent({ handle: ({ text }) => text.toUpperCase(), executionCost }, options)

const later = (seconds: number) => String(Math.floor(Date.now() / 1000) + seconds)

/** Calls `message/send` over plain HTTP, for responses that are not envelopes. */
async function send(
  agent: TestAgent,
  caller: TestCaller,
  headers: Record<string, string> = {},
  message: Record<string, unknown> = {},
  method = 'message/send',
) {
  const response = await fetch(agent.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${caller.token}`, ...headers },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: '1',
      method,
      params: {
        message: {
          role: 'user',
          kind: 'message',
          messageId: randomUUID(),
          parts: [{ kind: 'text', text: 'hi' }],
          ...message,
        },
      },
    }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true
  return {
    status: response.status,
    headers: response.headers,
    text,
    // oxlint-disable-next-line typescript/no-explicit-any -- the shape on the wire
    body: isJson ? (JSON.parse(text) as any) : {},
  }
}

test('an unpaid call creates no task and receives 402 with the requirements in the body and in the x402 version 2 header', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const { status, body, headers } = await send(agent, alice)
  expect(status).toBe(402)
  expect(body).toMatchObject({
    x402Version: 1,
    error: 'payment_required',
    accepts: [requirementsInBody],
    sandbox: true,
  })
  expect(body.jsonrpc).toBeUndefined()
  expect(decoded(headers.get('payment-required'))).toMatchObject({ x402Version: 2, accepts: [requirements] })
  expect((await send(agent, alice, {}, {}, 'message/stream')).status).toBe(402)
  expect(await alice.list()).toEqual([])
})

test.each(['x-payment', 'payment-signature'])(
  'the official client pays in the header %s, and the answer contains the receipt',
  async (name) => {
    await using agent = await paidAgent()
    const alice = agent.caller('alice')
    const wallet = new TestWallet()
    const { status, body, headers } = await send(agent, alice, { [name]: encoded(await wallet.pay()) })
    expect(status).toBe(200)
    const task = await alice.wait(body.result.id)
    expect(task.status.state).toBe('completed')
    expect(task.artifacts[0]?.parts[0]).toMatchObject({ text: 'HI' })
    for (const receipt of ['payment-response', 'x-payment-response']) {
      expect(decoded(headers.get(receipt))).toMatchObject({
        success: true,
        network: requirements.network,
        payer: wallet.account.address,
        transaction: expect.stringMatching(/^0x[\da-f]{64}$/),
        extra: { sandbox: true },
      })
    }
    await expect.poll(() => agent.app.services.store.payments.countPaymentsByState()).toEqual({ earned: 1 })
  },
)

test('the official client of version 1 reads the body, pays in X-PAYMENT and receives its receipt', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const unpaid = await send(agent, alice)
  const asked = PaymentRequiredV1Schema.parse(unpaid.body)
  expect(asked.accepts).toMatchObject([
    { network: 'base-sepolia', maxAmountRequired: '10000', resource: agent.url },
  ])
  const payer = new x402Client()
    .setSpendControls({ allowedAssets: true, maxAmountPerPayment: false })
    .registerV1('base-sepolia', new ExactEvmSchemeV1(new TestWallet().account))
  const payment = await payer.createPaymentPayload(asked as never)
  expect(payment).toMatchObject({ x402Version: 1, network: 'base-sepolia' })
  const paid = await send(agent, alice, { 'x-payment': encoded(payment) })
  expect(paid.status).toBe(200)
  expect(decoded(paid.headers.get('x-payment-response'))).toMatchObject({ success: true })
})

test('networks that version 1 cannot name are only in the header, and the body uses version 2 if there are no others', async () => {
  const local = { ...price, network: 'eip155:31337' }
  await using both = await paidAgent({}, [price, local])
  const first = await send(both, both.caller('alice'))
  expect(first.body.accepts.map(({ network }: { network: string }) => network)).toEqual(['base-sepolia'])
  const { accepts } = decoded(first.headers.get('payment-required')) as { accepts: { network: string }[] }
  expect(accepts.map(({ network }) => network)).toEqual(['eip155:84532', 'eip155:31337'])
  await using one = await paidAgent({}, local)
  const second = await send(one, one.caller('alice'))
  expect(second.body).toMatchObject({ x402Version: 2, accepts: [{ network: 'eip155:31337' }] })
})

test('a version 1 payment is also accepted', async () => {
  await using agent = await paidAgent()
  const { payload } = await new TestWallet().pay()
  const header = encoded({ x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload })
  expect((await send(agent, agent.caller('alice'), { 'x-payment': header })).status).toBe(200)
})

test('message/stream is paid like message/send', async () => {
  await using agent = await paidAgent()
  const header = await new TestWallet().header()
  const { status, text, headers } = await send(agent, agent.caller('alice'), header, {}, 'message/stream')
  expect(status).toBe(200)
  expect(headers.get('payment-response')).not.toBeNull()
  expect(text).toContain('"completed"')
})

const wallet = new TestWallet()
const flipped = (signature: string) => {
  const at = 10
  return signature.slice(0, at) + (signature[at] === 'a' ? 'b' : 'a') + signature.slice(at + 1)
}

test.each<[string, () => Promise<string>, string]>([
  ['not base64', async () => '%%%', 'invalid_payload'],
  ['not JSON', async () => Buffer.from('hello').toString('base64'), 'invalid_payload'],
  ['a JSON scalar', async () => encoded(7), 'invalid_payload'],
  ['too large', async () => encoded({ x402Version: 2, fill: 'x'.repeat(17_000) }), 'invalid_payload'],
  [
    'no version',
    async () => encoded({ ...(await wallet.pay()), x402Version: undefined }),
    'invalid_x402_version',
  ],
  ['version 3', async () => encoded({ ...(await wallet.pay()), x402Version: 3 }), 'invalid_x402_version'],
  [
    'another scheme',
    async () => encoded({ ...(await wallet.pay()), accepted: { ...requirements, scheme: 'upto' } }),
    'unsupported_scheme',
  ],
  [
    'no authorization',
    async () => encoded({ ...(await wallet.pay()), payload: { signature: '0x' } }),
    'invalid_payload',
  ],
  ['another network', async () => encoded(await wallet.pay({ network: 'eip155:8453' })), 'invalid_network'],
  [
    'another asset',
    async () => encoded(await wallet.pay({ asset: `0x${'2'.repeat(40)}` })),
    'invalid_payment_requirements',
  ],
  [
    'one unit too little',
    async () => encoded(await wallet.pay({ amount: '9999' })),
    'invalid_payment_requirements',
  ],
  [
    'one unit too much',
    async () => encoded(await wallet.pay({ amount: '10001' })),
    'invalid_payment_requirements',
  ],
  [
    'another payee',
    async () => encoded(await wallet.pay({ payTo: wallet.account.address })),
    'invalid_payment_requirements',
  ],
  [
    'a smaller value than it says',
    async () => encoded(await wallet.payWith({ value: '9999' })),
    'invalid_exact_evm_payload_authorization_value_mismatch',
  ],
  [
    'a larger value than it says',
    async () => encoded(await wallet.payWith({ value: '10001' })),
    'invalid_exact_evm_payload_authorization_value_mismatch',
  ],
  [
    'another payee than it says',
    async () => encoded(await wallet.payWith({ to: wallet.account.address })),
    'invalid_exact_evm_recipient_mismatch',
  ],
  [
    'expired',
    async () => encoded(await wallet.payWith({ validBefore: later(-10) })),
    'invalid_exact_evm_payload_authorization_valid_before',
  ],
  [
    'not yet valid',
    async () => encoded(await wallet.payWith({ validAfter: later(600) })),
    'invalid_exact_evm_payload_authorization_valid_after',
  ],
  [
    'valid for years',
    async () => encoded(await wallet.payWith({ validBefore: later(100_000_000) })),
    'invalid_exact_evm_payload_authorization_valid_before',
  ],
  [
    'a flipped signature',
    async () => {
      const payment = await wallet.pay()
      return encoded({
        ...payment,
        payload: { ...payment.payload, signature: flipped(payment.payload.signature) },
      })
    },
    'invalid_exact_evm_signature',
  ],
  [
    'somebody else as payer',
    async () => {
      const payment = await wallet.pay()
      const authorization = { ...payment.payload.authorization, from: new TestWallet().account.address }
      return encoded({ ...payment, payload: { ...payment.payload, authorization } })
    },
    'invalid_exact_evm_signature',
  ],
  [
    'a changed nonce',
    async () => {
      const payment = await wallet.pay()
      const authorization = { ...payment.payload.authorization, nonce: `0x${'7'.repeat(64)}` }
      return encoded({ ...payment, payload: { ...payment.payload, authorization } })
    },
    'invalid_exact_evm_signature',
  ],
  ['an unknown session', async () => encoded({ session_id: randomUUID() }), 'payment_session_not_found'],
])('an invalid payment (%s) receives 402 and creates no task', async (_what, header, error) => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const answer = await send(agent, alice, { 'x-payment': await header() })
  expect(answer).toMatchObject({ status: 402, body: { error, accepts: [requirementsInBody] } })
  expect(await alice.list()).toEqual([])
  expect(await agent.app.services.store.payments.countPaymentsByState()).toEqual({})
})

test('a payment refused for its signature does not use up the nonce of the genuine payment', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const payment = await wallet.pay()
  const forged = {
    ...payment,
    payload: { ...payment.payload, signature: flipped(payment.payload.signature) },
  }
  expect((await send(agent, alice, { 'x-payment': encoded(forged) })).status).toBe(402)
  expect((await send(agent, alice, { 'x-payment': encoded(payment) })).status).toBe(200)
})

test('a used nonce is refused for every caller', async () => {
  await using agent = await paidAgent()
  const header = await wallet.header()
  expect((await send(agent, agent.caller('alice'), header)).status).toBe(200)
  for (const name of ['alice', 'bob']) {
    const again = await send(agent, agent.caller(name), header)
    expect(again).toMatchObject({ status: 402, body: { error: 'invalid_exact_evm_nonce_already_used' } })
  }
})

test('exactly one of ten concurrent calls with one payment succeeds', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const header = await wallet.header()
  const answers = await Promise.all(Array.from({ length: 10 }, () => send(agent, alice, header)))
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    200,
    ...Array<number>(9).fill(402),
  ])
  expect(await alice.list()).toHaveLength(1)
})

test('a wallet has exactly 1,000 units of test money', async () => {
  await using agent = await testAgent({ handle: () => 'done', executionCost: { ...price, amount: '600' } })
  const poor = new TestWallet()
  const pay = async () => send(agent, agent.caller('alice'), await poor.header({ amount: '600000000' }))
  expect((await pay()).status).toBe(200)
  expect(await pay()).toMatchObject({
    status: 402,
    body: { error: 'invalid_exact_evm_insufficient_balance' },
  })
})

test('a call that any other check refuses is not charged', async () => {
  await using agent = await paidAgent()
  const [alice, bob] = [agent.caller('alice'), agent.caller('bob')]
  const first = await send(agent, alice, await wallet.header())
  const header = await wallet.header()
  const refused: [Record<string, unknown>, number][] = [
    [{ taskId: first.body.result.id }, -32001],
    [{ contextId: first.body.result.context_id }, -32020],
    [{ parts: [] }, -32602],
    [{ referenceTaskIds: [randomUUID()] }, -32001],
  ]
  for (const [message, code] of refused) {
    const { body } = await send(agent, bob, header, message)
    expect(body.error).toMatchObject({ code })
  }
  expect((await send(agent, bob, header)).status).toBe(200)
})

test('calls with the same Idempotency-Key pay once, whether concurrent or repeated with another payment', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const message = { messageId: randomUUID() }
  const same = async () => send(agent, alice, { ...(await wallet.header()), 'idempotency-key': 'k' }, message)
  const answers = await Promise.all([same(), same(), same()])
  answers.push(await same())
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(new Set(answers.map(({ body }) => body.result.id)).size).toBe(1)
  await expect.poll(() => agent.app.services.store.payments.countPaymentsByState()).toEqual({ earned: 1 })
})

test('the metadata of a client is not read as a payment', async () => {
  await using agent = await paidAgent()
  const alice = agent.caller('alice')
  const metadata = {
    payment: { status: 'completed' },
    payments: ['x'],
    heldBy: 'x',
    asked: { amount: '0' },
    payment_state: 'settled',
  }
  expect((await send(agent, alice, {}, { metadata, payments: ['x'], heldBy: 'y' })).status).toBe(402)
  const { body } = await send(agent, alice, await wallet.header(), { metadata, payments: ['x'], heldBy: 'y' })
  await alice.wait(body.result.id)
  const record = await agent.app.services.store.loadTask(body.result.id)
  expect(record?.payments).toHaveLength(1)
  expect(record?.payments).not.toContain('x')
  expect(record?.heldBy).toBeUndefined()
})

test('a task that fails after payment is payment-orphaned, and only operators see it listed for refund', async () => {
  await using agent = await testAgent({
    handle: () => {
      throw new Error('broken')
    },
    executionCost: price,
  })
  const alice = agent.caller('alice')
  const { body, headers } = await send(agent, alice, await wallet.header())
  await alice.wait(body.result.id)
  const list = async (caller: TestCaller, path = '/payments') =>
    fetch(`${agent.url}${path}`, { headers: { authorization: `Bearer ${caller.token}` } })
  expect((await list(alice)).status).toBe(403)
  const operator = agent.caller('operator', 'agent:admin')
  await expect
    .poll(async () => (await (await list(operator)).json()) as unknown)
    .toMatchObject({
      payments: [
        {
          state: 'payment-orphaned',
          reason: 'task_failed',
          owner: 'alice',
          payer: wallet.account.address,
          amount: '0.01',
          amount_atomic: '10000',
          task_id: body.result.id,
          tx_hash: decoded(headers.get('payment-response'))['transaction'],
        },
      ],
    })
  const whole = await list(operator)
  const page = (await whole.json()) as { counts: object }
  expect(page.counts).toEqual({ 'payment-orphaned': 1 })
  expect(whole.headers.get('deprecation')).toBeNull()
  const byName = await list(operator, '/payments?state=payment-orphaned')
  expect([byName.headers.get('deprecation'), await byName.json()]).toEqual([null, page])
  const byEarlierName = await list(operator, '/payments?state=orphaned')
  expect([byEarlierName.headers.get('deprecation'), await byEarlierName.json()]).toEqual([
    '@1795305600',
    page,
  ])
  expect((await list(operator, '/payments?state=lost')).status).toBe(400)
  const [row] = await agent.app.services.store.payments.listOfTask(body.result.id)
  // The store keeps the old name, so that it can read rows from earlier versions.
  expect(row?.state).toBe('orphaned')
  const refund = () =>
    fetch(`${agent.url}/payments/${row?.id}/refunded`, {
      method: 'POST',
      headers: { authorization: `Bearer ${operator.token}` },
    })
  expect((await refund()).status).toBe(200)
  expect((await refund()).status).toBe(409)
})

test('the card shows the price, and negotiation shows it in whole units', async () => {
  await using agent = await paidAgent()
  const card = (await (await fetch(`${agent.url}/.well-known/agent.json`)).json()) as Record<string, unknown>
  expect(card['executionCost']).toMatchObject({
    amount: '0.01',
    asset: price.asset,
    decimals: 6,
    sandbox: true,
  })
  const response = await fetch(`${agent.url}/agent/negotiation`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ task_summary: 'test', weights: {} }),
  })
  expect(await response.json()).toMatchObject({ estimated_cost_amount: '0.01' })
})

test('the log contains no signature, payload or nonce', async () => {
  const lines: string[] = []
  await using agent = await paidAgent({
    env: { LOG_LEVEL: 'trace' },
    logTo: { write: (line) => lines.push(line) },
  })
  const payment = await wallet.pay()
  await send(agent, agent.caller('alice'), { 'x-payment': encoded(payment) })
  await send(agent, agent.caller('alice'), { 'x-payment': encoded(payment) })
  const log = lines.join('')
  for (const action of ['payment.claimed', 'payment.settling', 'payment.spent', 'payment.refused'])
    expect(log).toContain(action)
  expect(log).not.toContain(payment.payload.signature)
  expect(log).not.toContain(encoded(payment))
  expect(log).not.toContain(payment.payload.authorization['nonce'])
})
