import { dialectClients } from '@parley/tools/testing/a2a-dialects'
import { dialectCases } from '@parley/tools/testing/a2a-dialects.cases'
import { A2aPayer } from '@parley/tools/testing/a2a-payer'
import { price } from '@parley/tools/testing/paid-agent'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent(
    {
      handle: async ({ text, ask, bid, history, signal }) => {
        if (text.startsWith('ask') && history.length === 1) return ask('what?')
        if (text.startsWith('bid') && history.length === 1) return bid({ amount: '0.01' })
        if (text.startsWith('hang')) await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return 'done'
      },
    },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
})
afterAll(() => agent[Symbol.asyncDispose]())

dialectCases({
  url: () => agent.url,
  caller: async (name) => ({ token: agent.caller(name).token, id: name }),
})

test.each([
  ['0.3', '1.0'],
  ['1.0', '0.3'],
] as const)('an unpaid task of A2A %s is found as input-required and paid in A2A %s', async (made, paid) => {
  await using seller = await testAgent({ handle: () => 'sold', executionCost: price })
  const { token } = seller.caller('alice')
  const { id } = (await new A2aPayer(seller, token, made).send('hello')).task
  for (const client of dialectClients(seller.url, token).filter(({ name }) => name.includes('1.0'))) {
    const found = await client.list({ status: 'TASK_STATE_INPUT_REQUIRED' })
    const canceled = await client.list({ status: 'TASK_STATE_CANCELED' })
    expect([found, canceled]).toEqual([[id], []])
  }
  const { task } = await new A2aPayer(seller, token, paid).pay(id)
  expect(task).toMatchObject({
    id,
    state: 'completed',
    metadata: { 'x402.payment.status': 'payment-completed' },
  })
})
