import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { TestChain } from '@parley/tools/testing/chain'
import type { PriceDefinition } from '@parley/wire/model/price'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, type TestCaller, type TestDefinition, testAgent } from '../../testing.ts'

let chain: TestChain
let folder: string
let signerKeyFile: string
beforeAll(async () => {
  chain = await TestChain.start()
  folder = await mkdtemp(path.join(tmpdir(), 'parley-chain-'))
  signerKeyFile = path.join(folder, 'signer.key')
  await writeFile(signerKeyFile, chain.signerKey, { mode: 0o600 })
})
afterAll(async () => {
  await chain?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const newAddress = () => privateKeyToAccount(generatePrivateKey()).address
const settings = () => ({ PAYMENT_RPC_URL: chain.url, PAYMENT_SIGNER_KEY_FILE: signerKeyFile })

function agentOnChain(
  price: PriceDefinition | PriceDefinition[],
  handle: TestDefinition['handle'] = () => 'done',
  timing = { decideTimeoutMs: 40_000, settleTimeoutMs: 40_000 },
): Promise<TestAgent> {
  const paymentTiming = { ...timing, reconcileIntervalMs: 50 }
  return testAgent({ handle, executionCost: price }, { env: settings(), paymentTiming })
}

/** Runs the official client over real HTTP: it reads the 402, signs the payment and reads the receipt. */
class OfficialClient {
  readonly client: x402HTTPClient
  readonly #caller: TestCaller
  readonly #url: string

  constructor(account: PrivateKeyAccount, caller: TestCaller, url: string) {
    const client = new x402Client()
      .setSpendControls({ allowedAssets: true, maxAmountPerPayment: false })
      .register('eip155:*', new ExactEvmScheme(account))
    this.client = new x402HTTPClient(client)
    this.#caller = caller
    this.#url = url
  }

  post(headers: Record<string, string>): Promise<Response> {
    const message = {
      role: 'user',
      kind: 'message',
      messageId: randomUUID(),
      parts: [{ kind: 'text', text: 'x' }],
    }
    return fetch(this.#url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${this.#caller.token}`,
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: { message } }),
    })
  }

  /** Returns the headers of a payment for the agent's price. */
  async sign(): Promise<Record<string, string>> {
    const unpaid = await this.post({})
    if (unpaid.status !== 402) throw new Error(`answered ${unpaid.status} without a payment`)
    const required = this.client.getPaymentRequiredResponse(
      (name) => unpaid.headers.get(name),
      await unpaid.json(),
    )
    return this.client.encodePaymentSignatureHeader(await this.client.createPaymentPayload(required))
  }
}

const taskOf = async (response: Response) => ((await response.json()) as { result: { id: string } }).result

test('the official client pays on a chain, the balances change by exactly the price and the task completes', async () => {
  const payTo = newAddress()
  const account = await chain.payer(1_000_000n)
  await using agent = await agentOnChain(chain.price('0.012345', payTo))
  const alice = agent.caller('alice')
  const official = new OfficialClient(account, alice, agent.url)
  const paid = await official.post(await official.sign())
  expect(paid.status).toBe(200)
  const receipt = official.client.getPaymentSettleResponse((name) => paid.headers.get(name))
  expect(receipt).toMatchObject({ success: true, network: chain.network })
  expect((await alice.wait((await taskOf(paid)).id)).status.state).toBe('completed')
  expect(await chain.balanceOf(account.address)).toBe(1_000_000n - 12_345n)
  expect(await chain.balanceOf(payTo)).toBe(12_345n)
  expect(await chain.paidTo(payTo)).toEqual([
    { from: account.address, to: payTo, atomic: 12_345n, txHash: receipt.transaction },
  ])
})

test('ten concurrent calls with one payment settle it once and create one task', async () => {
  const payTo = newAddress()
  let runs = 0
  await using agent = await agentOnChain(chain.price('0.01', payTo), () => `run ${(runs += 1)}`)
  const alice = agent.caller('alice')
  const official = new OfficialClient(await chain.payer(), alice, agent.url)
  const payment = await official.sign()
  const answers = await Promise.all(Array.from({ length: 10 }, () => official.post(payment)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 402)).toHaveLength(9)
  const taken = answers.find(({ status }) => status === 200) as Response
  expect((await alice.wait((await taskOf(taken)).id)).status.state).toBe('completed')
  expect(await chain.balanceOf(payTo)).toBe(10_000n)
  expect(await chain.paidTo(payTo)).toHaveLength(1)
  expect([runs, (await alice.list()).length]).toEqual([1, 1])
})

test('if a settlement times out but succeeds on the chain, the payment completes and the task runs once', async () => {
  const payTo = newAddress()
  let runs = 0
  const impatient = { decideTimeoutMs: 300, settleTimeoutMs: 1000 }
  const handle = () => `run ${(runs += 1)}`
  await using agent = await agentOnChain(chain.price('0.01', payTo), handle, impatient)
  const alice = agent.caller('alice')
  const official = new OfficialClient(await chain.payer(), alice, agent.url)
  const payment = await official.sign()
  await chain.mineByItself(false)
  const answer = await official.post(payment)
  const { id } = await taskOf(answer)
  expect(answer.headers.get('payment-response')).toBeNull()
  expect((await alice.get(id)).status.state).toBe('submitted')
  // The facilitator gives up long before the block is mined.
  const ledger = agent.app.services.payments?.ledger.store
  await expect.poll(() => ledger?.countPaymentsByState()).toEqual({ unknown: 1 })
  expect([(await alice.get(id)).status.state, runs]).toEqual(['submitted', 0])
  await chain.mineByItself(true)
  await chain.mine()
  expect((await alice.wait(id, { signal: AbortSignal.timeout(60_000) })).status.state).toBe('completed')
  expect(runs).toBe(1)
  expect(await chain.balanceOf(payTo)).toBe(10_000n)
  const [row] = (await ledger?.listOfTask(id)) ?? []
  expect(row).toMatchObject({ txHash: (await chain.paidTo(payTo))[0]?.txHash })
  await expect.poll(() => ledger?.countPaymentsByState()).toEqual({ earned: 1 })
})

test('a payer without funds and a changed signature receive 402, and no balance changes', async () => {
  const payTo = newAddress()
  await using agent = await agentOnChain(chain.price('0.5', payTo))
  const poor = new OfficialClient(await chain.payer(499_999n), agent.caller('alice'), agent.url)
  const refused = await poor.post(await poor.sign())
  expect(refused.status).toBe(402)
  expect(await refused.json()).toMatchObject({ error: expect.stringMatching(/^invalid_exact_evm/) })
  const rich = new OfficialClient(await chain.payer(), agent.caller('alice'), agent.url)
  const headers = await rich.sign()
  for (const [name, value] of Object.entries(headers)) {
    const payment = JSON.parse(Buffer.from(value, 'base64').toString()) as { payload: { signature: string } }
    const { signature } = payment.payload
    payment.payload.signature = `${signature.slice(0, 20)}${signature[20] === '0' ? '1' : '0'}${signature.slice(21)}`
    headers[name] = Buffer.from(JSON.stringify(payment)).toString('base64')
  }
  expect((await rich.post(headers)).status).toBe(402)
  expect(await chain.paidTo(payTo)).toEqual([])
})

test.each([
  ['decimals', { decimals: 8 }, /specifies 8 decimals.*has 6/],
  ['asset', { asset: '0x1111111111111111111111111111111111111111' }, /not a token/],
  ['network', { network: 'eip155:8453' }, /is a node of eip155:31337/],
])('an agent does not start if the chain does not confirm the %s of its price', async (_, wrong, said) => {
  await expect(agentOnChain({ ...chain.price('0.01', newAddress()), ...wrong })).rejects.toThrow(said)
})
