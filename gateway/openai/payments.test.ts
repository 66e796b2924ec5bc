import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { encoded, price, TestWallet } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import { gatewayForEachTest } from '../testing.ts'
import { assistant, errorOf, openAi, startAgent, user } from './testing.ts'

gatewayForEachTest()

const description = 'Weather forecast of rain and sun'
const skills = [{ id: 'weather', name: 'Weather', description, tags: ['weather'] }]
const paidAgent = () =>
  startAgent('sky', {
    skills,
    executionCost: price,
    handle: ({ text }) => `Sun after ${text}`,
  })
const chat = (client = openAi()) =>
  client.chat.completions.create({ model: 'sky', messages: [user('forecast of rain')] })
const textOf = async (answer: ReturnType<typeof chat>) => (await answer).choices[0]?.message.content

/** Pays on the payment page. */
async function payAt(url: string): Promise<number> {
  const body = JSON.stringify(await new TestWallet().pay())
  const headers = { 'content-type': 'application/json' }
  return (await fetch(url, { method: 'POST', headers, body })).status
}

const paymentIn = (error: Awaited<ReturnType<typeof errorOf>>) =>
  (error.error as { payment: { capture_url: string; session_id: string } }).payment

test('an unpaid message is answered with the price and a page; after the payment, the next message is answered once', async () => {
  await using _sky = await paidAgent()
  const error = await errorOf(chat())
  const { capture_url: url, session_id: sessionId } = paymentIn(error)
  expect(error).toMatchObject({
    status: 402,
    type: 'payment_required',
    code: 'payment_required',
    message: expect.stringContaining(
      `sky charges 0.01 USDC (${price.asset}) on eip155:84532, in test money, for this message`,
    ),
  })
  expect(error.message).toContain(url)
  expect(error.headers?.get('payment-required')).toBeTruthy()
  expect(paymentIn(await errorOf(chat())).session_id).toBe(sessionId)
  expect(await payAt(url)).toBe(200)
  expect(await errorOf(chat(openAi('bob')))).toMatchObject({ status: 402 })
  expect(await textOf(chat())).toBe('Sun after forecast of rain')
  expect(paymentIn(await errorOf(chat())).session_id).not.toBe(sessionId)
})

test('a program pays with a header, for an answer, a stream and a response', async () => {
  await using _sky = await paidAgent()
  const paying = async () =>
    openAi('alice', { defaultHeaders: { 'payment-signature': encoded(await new TestWallet().pay()) } })
  expect(await textOf(chat(await paying()))).toBe('Sun after forecast of rain')
  const client = await paying()
  const messages = [user('forecast of rain')]
  const chunks = await Array.fromAsync(
    await client.chat.completions.create({ model: 'sky', messages, stream: true }),
  )
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(
    'Sun after forecast of rain',
  )
  expect(await errorOf(chat(client))).toMatchObject({ status: 402 })
  const response = await (await paying()).responses.create({ model: 'auto', input: 'forecast of rain' })
  expect(response).toMatchObject({ model: 'sky', output_text: 'Sun after forecast of rain' })
})

test('auto is answered with the price of the agent that it has chosen', async () => {
  await using _sky = await paidAgent()
  const error = await errorOf(
    openAi().chat.completions.create({ model: 'auto', messages: [user('forecast of rain')] }),
  )
  expect(error).toMatchObject({ status: 402, message: expect.stringContaining('sky charges 0.01') })
  await payAt(paymentIn(error).capture_url)
  const { choices } = await openAi().chat.completions.create({
    model: 'auto',
    messages: [user('forecast of rain')],
  })
  expect(choices[0]?.message.content).toBe('Sun after forecast of rain')
})

test('an agent that names another one in its 402 does not use the payment for that agent', async () => {
  await using _sky = await paidAgent()
  const server = createServer((_request, response) => {
    response.writeHead(402, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ x402Version: 2, accepts: [], agent: 'sky' }))
  }).listen(0, '127.0.0.1')
  using _closed = { [Symbol.dispose]: () => void server.close() }
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await using _thief = await startAgent('thief', { handle: () => 'x' }, { url: `http://127.0.0.1:${port}` })
  expect(await payAt(paymentIn(await errorOf(chat())).capture_url)).toBe(200)
  const messages = [user('forecast of rain')]
  const error = await errorOf(openAi().chat.completions.create({ model: 'thief', messages }))
  expect(error).toMatchObject({ status: 402, message: expect.stringContaining('thief must be paid') })
  expect(await textOf(chat())).toBe('Sun after forecast of rain')
})

test('a payment that an agent requests during its work is a message with a page', async () => {
  await using _sky = await startAgent('sky', {
    executionCost: { ...price, amount: '0' },
    handle: ({ history, requirePayment }) =>
      history.length === 1
        ? requirePayment({ amount: '0.02', reason: 'The long forecast costs extra' })
        : 'Sun',
  })
  const question = (await textOf(chat())) ?? ''
  expect(question).toMatch(
    /^The long forecast costs extra\n\nThe price is 0\.02 USDC .* on eip155:84532\. Pay at (\S+), then reply to continue\. \(task \S+\)$/,
  )
  const messages = [user('forecast of rain'), assistant(question), user('done')]
  const answer = async () =>
    (await openAi().chat.completions.create({ model: 'sky', messages })).choices[0]?.message.content
  expect(await answer()).toBe(question)
  const [, url = ''] = /Pay at (\S+),/.exec(question) ?? []
  const paid = JSON.stringify(await new TestWallet().pay({ amount: '20000' }))
  await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: paid })
  expect(await answer()).toBe('Sun')
})
