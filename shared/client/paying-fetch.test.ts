import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { AgentClient } from './client.ts'
import { type PaymentRequirements, payingFetch } from './paying-fetch.ts'

const option = {
  scheme: 'exact',
  network: 'eip155:84532',
  asset: '0xa',
  amount: '10000',
  payTo: '0xb',
  maxTimeoutSeconds: 300,
  extra: { name: 'USDC', version: '2' },
}
const asks = (more: object = {}) =>
  JSON.stringify({ x402Version: 2, error: 'payment_required', accepts: [option], ...more })

/** An agent that requires payment and records the requests that it receives. */
let unpaid = asks()
let takes = true
let received: { body: string; payment: string | undefined }[] = []
const server = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk: Buffer) => (body += chunk.toString()))
  request.on('end', () => {
    const payment = request.headers['payment-signature'] as string | undefined
    received.push({ body, payment })
    if (payment === undefined || !takes)
      return response.writeHead(402, { 'content-type': 'application/json', 'x-agent': 'seller' }).end(unpaid)
    const { id } = JSON.parse(body) as { id: string }
    return response.end(JSON.stringify({ jsonrpc: '2.0', id, result: 'done' }))
  })
})
let url: string
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => server.close())
beforeEach(() => {
  unpaid = asks()
  takes = true
  received = []
})

const calling = (payer: Parameters<typeof payingFetch>[0]) =>
  new AgentClient({ url, fetch: payingFetch(payer) }).call('message/send', {})

test('payingFetch sends the required payment once, with the same message', async () => {
  const seen: PaymentRequirements[] = []
  const done = await calling(async (asked) => {
    seen.push(asked)
    return { payload: 'signed ü' }
  })
  expect(done).toBe('done')
  expect(seen).toMatchObject([
    { error: 'payment_required', accepts: [option], sandbox: false, agent: 'seller' },
  ])
  expect(received).toHaveLength(2)
  expect(received[0]?.body).toBe(received[1]?.body)
  expect(Buffer.from(received[1]?.payment ?? '', 'base64').toString()).toBe('{"payload":"signed ü"}')
})

test('payingFetch does not repeat a refused payment but reports the refusal', async () => {
  takes = false
  unpaid = asks({ error: 'invalid_exact_evm_signature' })
  await expect(calling(async () => ({}))).rejects.toMatchObject({
    status: 402,
    message: 'Payment required: invalid_exact_evm_signature',
  })
  expect(received).toHaveLength(2)
})

test('payingFetch does not send the message again if the payer declines or throws', async () => {
  await expect(calling(async () => undefined)).rejects.toMatchObject({
    status: 402,
    message: 'Payment required',
  })
  await expect(calling(() => Promise.reject(new Error('too dear')))).rejects.toMatchObject({
    name: 'ConnectionError',
    cause: new Error('too dear'),
  })
  expect(received).toHaveLength(2)
})

test.each([
  ['no JSON', 'pay!'],
  ['a list', '[]'],
  ['null', 'null'],
  ['no ways to pay', asks({ accepts: 'all' })],
  ['longer than it can be', asks({ filler: 'x'.repeat(70_000) })],
])('a 402 that is %s does not call the payer', async (_, body) => {
  unpaid = body
  let asked = 0
  await expect(calling(async () => ({ asked: (asked += 1) }))).rejects.toMatchObject({ status: 402 })
  expect(asked).toBe(0)
})

test.each([
  { amount: '1.5' },
  { amount: -1 },
  { amount: '1'.repeat(79) },
  { scheme: 'upto' },
  { extra: null },
  { payTo: 7 },
  { maxTimeoutSeconds: '300' },
])('payingFetch ignores a payment option with %o', async (wrong) => {
  unpaid = asks({ accepts: [{ ...option, ...wrong }, null, option] })
  let ways = 0
  await calling(async ({ accepts }) => {
    ways = accepts.length
    return {}
  })
  expect(ways).toBe(1)
})
