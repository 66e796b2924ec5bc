import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { type TestAgent, testAgent } from '@parley/agent/testing'
import { price, TestWallet } from '@parley/tools/testing/paid-agent'
import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const origins: Record<string, string> = { paid: 'supervised', free: 'supervised', stranger: 'registered' }

/** Starts the part of a gateway that the command uses: the agent list and the agents’ own routes. */
async function gatewayOf(agents: Record<string, TestAgent>, more: Record<string, string> = {}) {
  const asked: string[] = []
  const all = { ...origins, ...more }
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const json = (body: unknown, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const [, , slug = '', rest] = /^\/(registry\/)?agents\/?([\w-]*)(.*)$/.exec(request.url ?? '') ?? []
    if (request.url?.startsWith('/registry/') === true) {
      const list = Object.entries(all).map(([name, origin]) => ({ slug: name, origin }))
      return json(slug === '' ? { agents: list } : { slug, origin: all[slug] })
    }
    asked.push(slug)
    const agent = agents[slug]
    if (agent === undefined) return json({ error: { code: -32042, message: 'down', data: {} } }, 503)
    const { method = 'GET', headers } = request
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { authorization = '', 'content-type': type = 'application/json' } = headers
    const body = method === 'GET' ? {} : { body: Buffer.concat(chunks) }
    const said = await fetch(`${agent.url}${rest}`, {
      method,
      headers: { authorization, ...(method === 'GET' ? {} : { 'content-type': type }) },
      ...body,
    })
    return json(await said.json(), said.status)
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, asked, [Symbol.dispose]: () => void server.close() }
}

async function orphanOf(agent: TestAgent): Promise<void> {
  const headers = await new TestWallet().header()
  const alice = agent.caller('alice')
  const task = await alice.send('x', undefined, { headers })
  await alice.wait(task.id)
  const { payments } = agent.app.services.store
  await expect.poll(() => payments.countPaymentsByState()).toEqual({ orphaned: 1 })
}

const failing = () =>
  testAgent({
    executionCost: price,
    handle: () => {
      throw new Error('no')
    },
  })

test('payments --orphaned lists the refunds due at all supervised agents and contacts no external agent', async () => {
  await using paid = await failing()
  await using free = await testAgent({ handle: () => 'done' }, { identityProvider: paid.identityProvider })
  using gateway = await gatewayOf({ paid, free })
  using folder = temporaryFolder()
  await orphanOf(paid)
  const { token } = paid.caller('operator', 'agent:admin')
  const run = (...more: string[]) =>
    runCli(['payments', '--url', gateway.url, '--token', token, ...more], { cwd: folder.path })
  const said = await run('--orphaned')
  expect(said).toMatchObject({ code: 0, stderr: '' })
  expect(said.stdout).toMatch(
    /orphaned \(task_failed\)\n {2}0\.01 USDC on eip155:84532 \(test money\)\n[\s\S]*transaction 0x[\s\S]*agent paid\n/,
  )
  expect(new Set(gateway.asked)).toEqual(new Set(['paid', 'free']))
  const { payments } = JSON.parse((await run('--json')).stdout) as { payments: Record<string, string>[] }
  expect(payments).toMatchObject([{ agent: 'paid', state: 'payment-orphaned', amount: '0.01' }])
  expect((await run('--state', 'orphaned', '--json')).stdout).toBe((await run('--json')).stdout)
  const id = payments[0]?.['payment_id'] ?? ''
  expect((await run('--refunded', id)).code).toBe(2)
  expect((await run('paid', '--refunded', id)).stdout).toBe(`${id} is refunded.\n`)
  expect((await run()).stdout).toContain(
    'No payments in the state payment-orphaned. --state lists other states',
  )
  expect((await run('--state', 'refunded')).stdout).toContain(id)
  const tx = `0x${'a'.repeat(64)}`
  expect((await run('paid', '--refunded', id)).code).toBe(1)
  expect((await run('paid', '--refunded', id, '--tx', tx)).code).toBe(0)
  expect((await run('--state', 'refunded')).stdout).toContain(`paid back by ${tx}\n`)
  expect((await run('paid', '--refunded', id, '--tx', `0x${'b'.repeat(64)}`)).code).toBe(1)
})

test('the author of an agent reads its ledger and records refunds with the agent’s own client', async () => {
  await using paid = await failing()
  using folder = temporaryFolder()
  await orphanOf(paid)
  const { did } = paid
  const { token } = paid.caller(did)
  await using issuer = await issuerOf(token)
  const own = path.join(folder.path, '.parley', 'agents', 'paid')
  const argv = ['payments', 'paid', '--agent-url', paid.url]
  const without = await runCli(argv, { cwd: folder.path })
  expect(without).toMatchObject({ code: 1, stdout: '' })
  expect(without.stderr).toContain(path.join(own, 'oauth-client.json'))
  mkdirSync(own, { recursive: true })
  const client = { client_id: did, client_secret: 'secret', issuer: `${issuer.url}/oauth2` }
  writeFileSync(path.join(own, 'oauth-client.json'), JSON.stringify(client), { mode: 0o600 })
  const said = await runCli(argv, { cwd: folder.path })
  expect(said).toMatchObject({ code: 0, stderr: '' })
  expect(said.stdout).toContain('0.01 USDC')
  const { payments } = JSON.parse((await runCli([...argv, '--json'], { cwd: folder.path })).stdout) as {
    payments: { payment_id: string }[]
  }
  const refund = await runCli([...argv, '--refunded', payments[0]?.payment_id ?? ''], { cwd: folder.path })
  expect(refund.stdout).toMatch(/is refunded\.\n$/)
})

test('an agent without a price has no ledger', async () => {
  await using free = await testAgent({ handle: () => 'done' })
  using folder = temporaryFolder()
  await using issuer = await issuerOf(free.caller(free.did).token)
  const own = path.join(folder.path, '.parley', 'agents', 'free')
  mkdirSync(own, { recursive: true })
  const client = { client_id: free.did, client_secret: 'secret', issuer: `${issuer.url}/oauth2` }
  writeFileSync(path.join(own, 'oauth-client.json'), JSON.stringify(client), { mode: 0o600 })
  const said = await runCli(['payments', 'free', '--agent-url', free.url], { cwd: folder.path })
  expect(said).toEqual({ code: 1, stdout: '', stderr: 'parley: free takes no payments: it has no ledger.\n' })
})

test('the command informs the operator that a supervised agent without a price has no ledger', async () => {
  await using free = await testAgent({ handle: () => 'done' })
  using gateway = await gatewayOf({ free }, {})
  const said = await runCli([
    'payments',
    'free',
    '--url',
    gateway.url,
    '--token',
    free.caller('x', 'agent:admin').token,
  ])
  expect(said).toEqual({ code: 1, stdout: '', stderr: 'parley: free takes no payments: it has no ledger.\n' })
})

/** Starts an OAuth server that issues this token. */
async function issuerOf(token: string) {
  const issuer = await scriptedAgent({
    'GET /.well-known/oauth-authorization-server/oauth2': () => ({
      status: 200,
      type: 'application/json',
      body: JSON.stringify({ issuer: `${issuer.url}/oauth2`, token_endpoint: `${issuer.url}/token` }),
    }),
    'POST /token': () => ({
      status: 200,
      type: 'application/json',
      body: JSON.stringify({ access_token: token }),
    }),
  })
  return issuer
}

test('payments names an agent that does not respond and exits with code 1', async () => {
  await using paid = await failing()
  using gateway = await gatewayOf({ paid }, { free: 'registered', away: 'supervised' })
  using folder = temporaryFolder()
  await orphanOf(paid)
  const { token } = paid.caller('operator', 'agent:admin')
  const said = await runCli(['payments', '--url', gateway.url, '--token', token], { cwd: folder.path })
  expect(said.code).toBe(1)
  expect(said.stdout).toContain('orphaned')
  expect(said.stderr).toContain('away')
})

test('a caller without permission gets exit code 1 and an empty list', async () => {
  await using paid = await failing()
  using gateway = await gatewayOf({ paid })
  using folder = temporaryFolder()
  await orphanOf(paid)
  const { token } = paid.caller('alice')
  const said = await runCli(['payments', '--url', gateway.url, '--token', token], { cwd: folder.path })
  expect([said.code, said.stdout]).toEqual([1, ''])
})

test('the operator’s own token is never sent to an external agent', async () => {
  await using paid = await failing()
  using gateway = await gatewayOf({ paid })
  using folder = temporaryFolder()
  const said = await runCli(['payments', 'stranger', '--url', gateway.url], { cwd: folder.path })
  expect(said).toMatchObject({ code: 1, stderr: expect.stringContaining('stranger is an external agent') })
  expect(gateway.asked).toEqual([])
})
