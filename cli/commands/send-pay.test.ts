import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type TestAgent, type TestDefinition, testAgent } from '@parley/agent/testing'
import { price } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const paidAgent = (more: Partial<TestDefinition> = {}, env = {}) =>
  testAgent({ handle: ({ text }) => `did ${text}`, executionCost: price, ...more }, { env })

/** Sends a message to `-` at the address of the agent itself, as if the agent were a gateway. */
function send(agent: TestAgent, folder: string, ...more: string[]) {
  const { token } = agent.caller('alice')
  return runCli(['send', '-', 'it', '--url', agent.url, '--token', token, ...more], {
    env: { DATA_DIR: folder },
    cwd: folder,
  })
}

const spent = async (agent: TestAgent) => {
  const counts = (await agent.app.services.payments?.ledger.store.countPaymentsByState()) ?? {}
  return (counts.spent ?? 0) + (counts.earned ?? 0)
}

test('send --pay --yes pays the agent’s price from the test wallet and prints the answer', async () => {
  await using agent = await paidAgent()
  using folder = temporaryFolder()
  const said = await send(agent, folder.path, '--pay', '--yes')
  expect(said).toMatchObject({ code: 0, stdout: 'did it\n' })
  expect(said.stderr).toMatch(/^Paying 0\.01 USDC \(eip155:84532, test money\) from 0x[\da-fA-F]{40}\n/)
  expect(statSync(path.join(folder.path, 'wallet.key')).mode & 0o777).toBe(0o600)
  expect(await spent(agent)).toBe(1)
})

test('without --pay, send prints the price, pays nothing and exits with code 1', async () => {
  await using agent = await paidAgent()
  using folder = temporaryFolder()
  const said = await send(agent, folder.path)
  expect(said.code).toBe(1)
  expect(said.stderr).toContain('The agent charges 0.01 USDC (eip155:84532, test money). Add --pay')
  expect((await send(agent, folder.path, '--pay')).stderr).toContain('Add --yes, or --max with an amount')
  expect(await spent(agent)).toBe(0)
})

test.each([
  ['0.01', 0],
  ['0.0100000', 0],
  ['5', 0],
  ['0.009', 1],
  ['0.009999999999', 1],
])('send with --max %s exits with code %i', async (max, code) => {
  await using agent = await paidAgent()
  using folder = temporaryFolder()
  expect((await send(agent, folder.path, '--pay', '--max', max)).code).toBe(code)
  expect(await spent(agent)).toBe(code === 0 ? 1 : 0)
})

test.each(['-1', '1e3', 'much', ''])('--max "%s" is wrong use: exit code 2', async (max) => {
  using folder = temporaryFolder()
  const said = await runCli(['send', '-', 'it', '--pay', '--max', max], { cwd: folder.path })
  expect(said.code).toBe(2)
})

test('send asks for confirmation on a terminal before paying', async () => {
  await using agent = await paidAgent()
  using folder = temporaryFolder()
  const { token } = agent.caller('alice')
  const args = ['send', '-', 'it', '--url', agent.url, '--token', token, '--pay']
  const given = { env: { DATA_DIR: folder.path }, cwd: folder.path, tty: true }
  expect(await runCli(args, { ...given, stdin: 'no\n' })).toMatchObject({ code: 1 })
  expect(await spent(agent)).toBe(0)
  expect(await runCli(args, { ...given, stdin: 'yes\n' })).toMatchObject({ code: 0 })
  expect(await spent(agent)).toBe(1)
})

test('send also pays a price requested during a task, and --max limits the total', async () => {
  const handle: TestDefinition['handle'] = ({ requirePayment, history }) =>
    history.length > 1 ? 'more' : requirePayment({ amount: '0.02', reason: 'it takes longer' })
  await using agent = await paidAgent({ handle })
  using folder = temporaryFolder()
  const said = await send(agent, folder.path, '--pay', '--max', '0.03')
  expect(said).toMatchObject({ code: 0, stdout: 'more\n' })
  expect(await spent(agent)).toBe(2)
  const refused = await send(agent, folder.path, '--pay', '--max', '0.02')
  expect(refused).toMatchObject({ code: 1 })
  expect(refused.stderr).toContain('more than --max')
})

test('the test wallet does not sign for networks with real money', async () => {
  const real = { ...price, network: 'eip155:8453' }
  await using agent = await paidAgent(
    { executionCost: real },
    { PAYMENT_FACILITATOR_URL: 'http://127.0.0.1:9/' },
  )
  using folder = temporaryFolder()
  const said = await send(agent, folder.path, '--pay', '--yes')
  expect(said.code).toBe(1)
  expect(said.stderr).toContain('real money')
})

test('send rejects an invalid wallet key and a key that others can read', async () => {
  await using agent = await paidAgent()
  using folder = temporaryFolder()
  await runCli(['wallet', '--url', agent.url], { env: { DATA_DIR: folder.path } })
  const file = path.join(folder.path, 'wallet.key')
  const key = readFileSync(file, 'utf8').trim()
  chmodSync(file, 0o644)
  const open = await send(agent, folder.path, '--pay', '--yes')
  expect(open).toMatchObject({ code: 1 })
  expect(open.stderr).toContain('chmod 600')
  chmodSync(file, 0o600)
  writeFileSync(file, 'nothing')
  const broken = await send(agent, folder.path, '--pay', '--yes')
  expect(broken.stderr).toContain('holds no wallet key')
  expect(open.stderr + broken.stderr).not.toContain(key)
})
