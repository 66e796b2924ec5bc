import { statSync } from 'node:fs'
import path from 'node:path'
import { testAgent } from '@parley/agent/testing'
import { price, TestWallet } from '@parley/tools/testing/paid-agent'
import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

test('parley wallet creates one key that only its owner can read and prints its address', async () => {
  await using server = await scriptedAgent({})
  using folder = temporaryFolder()
  const show = () => runCli(['wallet', '--url', server.url, '--json'], { env: { DATA_DIR: folder.path } })
  const [one, other] = await Promise.all([show(), show()])
  expect(one.code).toBe(0)
  const file = path.join(folder.path, 'wallet.key')
  expect(JSON.parse(one.stdout)).toMatchObject({ address: expect.stringMatching(/^0x[\da-fA-F]{40}$/), file })
  expect(one.stdout).toBe(other.stdout)
  expect((await show()).stdout).toBe(one.stdout)
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test('parley wallet prints the wallet even without a server', async () => {
  using folder = temporaryFolder()
  const said = await runCli(['wallet', '--url', 'http://127.0.0.1:9'], { env: { DATA_DIR: folder.path } })
  expect(said.code).toBe(0)
  expect(said.stdout).toContain('no gateway answers')
})

test('parley wallet prints the balance as an amount of its currency', async () => {
  const registry = { agents: [{ slug: 'paid' }] }
  const account = { balances: [{ amount: '999.99', name: 'USDC', network: 'eip155:84532' }] }
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  const { address } = JSON.parse(
    (await runCli(['wallet', '--url', 'http://127.0.0.1:9', '--json'], { env })).stdout,
  ) as {
    address: string
  }
  const json = (body: object) => () => ({ status: 200, type: 'application/json', body: JSON.stringify(body) })
  await using server = await scriptedAgent({
    'GET /registry/agents': json(registry),
    [`GET /agents/paid/api/test-wallet/${address}`]: json(account),
  })
  const said = await runCli(['wallet', '--url', server.url], { env })
  expect(said.stdout).toContain('  balance  999.99 USDC (eip155:84532, test money) at paid\n')
})

test('GET /api/test-wallet/{address} returns the remaining test money, or 404 for agents that do not take it', async () => {
  await using agent = await testAgent({ handle: () => 'done', executionCost: price })
  const wallet = new TestWallet()
  const balance = async (of: string = wallet.account.address) => {
    const answer = await fetch(`${agent.url}/api/test-wallet/${of}`)
    return { status: answer.status, body: (await answer.json()) as { balances?: { amount: string }[] } }
  }
  expect((await balance()).body.balances?.map(({ amount }) => amount)).toEqual(['1000'])
  await agent.caller('alice').send('hi', undefined, { headers: await wallet.header() })
  expect((await balance()).body.balances?.map(({ amount }) => amount)).toEqual(['999.99'])
  for (const odd of ['0x1', 'x', '%00', `${wallet.account.address}0`])
    expect((await balance(odd)).status).toBe(404)
  const env = { PAYMENT_FACILITATOR_URL: 'http://127.0.0.1:9/' }
  await using real = await testAgent({ handle: () => 'done', executionCost: price }, { env })
  expect((await fetch(`${real.url}/api/test-wallet/${wallet.account.address}`)).status).toBe(404)
})
