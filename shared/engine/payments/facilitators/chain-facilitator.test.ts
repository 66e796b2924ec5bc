import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestAgent, testAgent } from '@parley/agent/testing'
import type { RpcError } from '@parley/client/internal/rpc-error'
import { TestChain } from '@parley/tools/testing/chain'
import { encoded } from '@parley/tools/testing/paid-agent'
import { toAtomic } from '@parley/wire/model/amount'
import type { PriceDefinition } from '@parley/wire/model/price'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let chain: TestChain
let folder: string
let signerKeyFile: string
beforeAll(async () => {
  chain = await TestChain.start()
  folder = await mkdtemp(path.join(tmpdir(), 'parley-chain-facilitator-'))
  signerKeyFile = path.join(folder, 'signer.key')
  await writeFile(signerKeyFile, chain.signerKey, { mode: 0o600 })
})
afterAll(async () => {
  await chain?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

function agentOnChain(
  price: PriceDefinition,
  more: Parameters<typeof testAgent>[1] = {},
): Promise<TestAgent> {
  const env = { PAYMENT_RPC_URL: chain.url, PAYMENT_SIGNER_KEY_FILE: signerKeyFile, ...more.env }
  const paymentTiming = { decideTimeoutMs: 5000, settleTimeoutMs: 5000, reconcileIntervalMs: 50 }
  return testAgent({ handle: () => 'done', executionCost: price }, { paymentTiming, ...more, env })
}

async function paymentOf(price: PriceDefinition): Promise<Record<string, string>> {
  const client = new x402Client()
    .setSpendControls({ allowedAssets: true, maxAmountPerPayment: false })
    .register('eip155:*', new ExactEvmScheme(await chain.payer()))
  const { asset, network, payTo, extra, amount } = price
  const accepts = [
    {
      scheme: 'exact',
      network,
      asset,
      payTo,
      extra,
      amount: `${toAtomic(amount, 6)}`,
      maxTimeoutSeconds: 300,
    },
  ]
  return { 'x-payment': encoded(await client.createPaymentPayload({ x402Version: 2, accepts } as never)) }
}

const newAddress = () => privateKeyToAccount(generatePrivateKey()).address

// This test runs first, because the official scheme caches the contracts that it has checked.
test('a failing node causes a 503, takes no money, and no signature, key or node URL is logged', async () => {
  let works = true
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(chain.url, { method: 'POST', headers, body: Buffer.concat(chunks) })
    response.writeHead(200, headers).end(await answer.text())
  }
  const node = createServer((request, response) => {
    if (works) void pass(request, response)
    else request.socket.destroy()
  })
  await new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve))
  await using _node = { [Symbol.asyncDispose]: async () => void node.close() }
  const secret = randomUUID()
  const lines: string[] = []
  const price = chain.price('0.01', newAddress())
  await using agent = await agentOnChain(price, {
    env: {
      PAYMENT_RPC_URL: `http://127.0.0.1:${(node.address() as AddressInfo).port}/${secret}`,
      LOG_LEVEL: 'debug',
    },
    logTo: { write: (line) => void lines.push(line) },
  })
  const alice = agent.caller('alice')
  const headers = await paymentOf(price)
  const { payload } = JSON.parse(Buffer.from(headers['x-payment'] ?? '', 'base64').toString()) as {
    payload: { signature: string }
  }
  works = false
  const refused = await alice.send('x', undefined, { headers }).catch((error: RpcError) => error)
  expect((refused as RpcError).status).toBe(503)
  works = true
  // No money was taken, so the same payment is still valid.
  const task = await alice.send('x', undefined, { headers })
  expect((await alice.wait(task.id)).status.state).toBe('completed')
  const log = lines.join('')
  expect(log).toContain('payment.')
  const { signature } = payload
  for (const hidden of [secret, signature, signature.slice(2, 66), chain.signerKey.slice(2)])
    expect(log).not.toContain(hidden)
})

test('one signed transfer sent concurrently to two agents with the same address pays only one of them', async () => {
  const price = chain.price('0.01', newAddress())
  await using stack = new AsyncDisposableStack()
  const agents = [stack.use(await agentOnChain(price)), stack.use(await agentOnChain(price))]
  for (let round = 1; round <= 3; round += 1) {
    const headers = await paymentOf(price)
    const sends = agents.map((agent) => agent.caller('alice').send('x', undefined, { headers }))
    await Promise.allSettled(sends)
    await expect
      .poll(async () => (await Promise.all(agents.map(statesOf))).flat().sort(), { timeout: 100_000 })
      .toEqual(Array.from({ length: round }, () => 'earned'))
    expect(await chain.paidTo(price.payTo)).toHaveLength(round)
  }
})

/** Returns the states of all payments except failed ones. */
async function statesOf(agent: TestAgent): Promise<string[]> {
  const counts = await agent.app.services.store.payments.countPaymentsByState()
  return Object.entries(counts).flatMap(([state, count]) =>
    state === 'failed' ? [] : Array.from({ length: count }, () => state),
  )
}
