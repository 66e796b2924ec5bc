import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { signPayment } from '@parley/engine/payments/x402/wallet'
import { requirementsOf } from '@parley/engine/payments/x402/x402'
import type { PaymentTerms, SignedTransfer } from '@parley/engine/store/payment-store'
import { hasServers, startServers } from '@parley/tools/testing/agent-processes'
import { TestChain } from '@parley/tools/testing/chain'
import { KillableAgent } from '@parley/tools/testing/killable-agent'
import { startLimitedNode } from '@parley/tools/testing/limited-node'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let chain: TestChain
let folder: string
let env: Record<string, string>
beforeAll(async () => {
  chain = await TestChain.start()
  folder = await mkdtemp(path.join(tmpdir(), 'parley-transfers-'))
  const signerKeyFile = path.join(folder, 'signer.key')
  await writeFile(signerKeyFile, chain.signerKey, { mode: 0o600 })
  env = { PAYMENT_RPC_URL: chain.url, PAYMENT_SIGNER_KEY_FILE: signerKeyFile }
})
afterAll(async () => {
  await chain?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const newAddress = () => privateKeyToAccount(generatePrivateKey()).address
const atOnce = { PAYMENT_TRANSFER_CONFIRMATIONS: '1' }

function agentOnChain(
  price: object,
  { lines = [], more = {} }: { lines?: string[]; more?: Record<string, string> } = {},
): Promise<TestAgent> {
  const paymentTiming = { reconcileIntervalMs: 50, transferIntervalMs: 50 }
  const executionCost = { ...chain.price('1', newAddress()), ...price }
  const logTo = { write: (line: string) => void lines.push(line) }
  const settings = { ...env, ...atOnce, LOG_LEVEL: 'warn', ...more }
  return testAgent({ handle: () => 'done', executionCost }, { paymentTiming, logTo, env: settings })
}

interface Session {
  session_id: string
  capture_url: string
}

async function startSession(url: string, token: string): Promise<Session> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const answer = await fetch(`${url}/api/start-payment-session`, { method: 'POST', headers, body: '{}' })
  return (await answer.json()) as Session
}

/** Returns the transfer that the page requests, or undefined. */
async function transferOn({ capture_url: url }: Session) {
  const page = await (await fetch(url)).text()
  const uri = /ethereum:(0x\w{40})@(\d+)\/transfer\?address=(0x\w{40})&amp;uint256=(\d+)/.exec(page)
  if (uri === null) return undefined
  const [, asset, chainId, payTo = '', atomic = ''] = uri
  return { asset, chainId, payTo, atomic: BigInt(atomic) }
}

/** Returns the transfer that the page requests. @throws Error if there is none */
async function requiredTransferOn(session: Session) {
  const transfer = await transferOn(session)
  if (transfer === undefined) throw new Error('the page requests no transfer')
  return transfer
}

const statusOf = async (agent: TestAgent, session: Session) => {
  const found = await agent.app.services.payments?.sessions.findByCapture(
    session.capture_url.split('/').at(-1) ?? '',
  )
  return found?.state
}
const orphans = async (agent: TestAgent) => {
  const query = { states: ['orphaned'] as const, limit: 10 }
  const listed = await agent.app.services.store.payments.listPayments(query)
  return listed.items.map(({ reason, txHash, payer, terms }) => ({
    reason,
    txHash,
    payer,
    atomic: terms.atomic,
  }))
}

test('the transfer on the page pays the session, which buys a message; a second one is listed for a refund', async () => {
  const lines: string[] = []
  await using agent = await agentOnChain({ transfers: true }, { lines })
  const alice = agent.caller('alice')
  const session = await startSession(agent.url, alice.token)
  const other = await startSession(agent.url, alice.token)
  const { payTo, atomic, asset, chainId } = await requiredTransferOn(session)
  expect([asset, chainId]).toEqual([chain.token, '31337'])
  expect(atomic > 1_000_000n && atomic < 1_001_000n).toBe(true)
  expect(await requiredTransferOn(session)).toMatchObject({ atomic })
  expect((await requiredTransferOn(other)).atomic).not.toBe(atomic)
  await chain.transfer(payTo, 1_000_000n)
  const txHash = await chain.transfer(payTo, atomic)
  await expect.poll(() => statusOf(agent, session)).toBe('settled')
  const headers = { 'x-payment-session': session.session_id }
  const task = await alice.send('x', undefined, { headers })
  expect((await alice.wait(task.id)).status.state).toBe('completed')
  const payer = privateKeyToAccount(chain.signerKey).address
  const [paid] = await agent.app.services.store.payments.listOfTask(task.id)
  expect(paid).toMatchObject({ txHash, payer, terms: { atomic: `${atomic}` } })
  const second = await chain.transfer(payTo, atomic)
  const refund = { reason: 'second_transfer', txHash: second, payer, atomic: `${atomic}` }
  await expect.poll(() => orphans(agent)).toEqual([refund])
  expect(await statusOf(agent, other)).toBe('open')
  expect(lines.filter((line) => line.includes('matches no payment session'))).toHaveLength(1)
})

test('a signed payment of an amount that a session requests as a transfer is counted once', async () => {
  const lines: string[] = []
  await using agent = await agentOnChain({ transfers: true }, { lines })
  const alice = agent.caller('alice')
  const session = await startSession(agent.url, alice.token)
  const { payTo, atomic } = await requiredTransferOn(session)
  const key = generatePrivateKey()
  await chain.mint(privateKeyToAccount(key).address, 10_000_000n)
  // A session whose price is the exact amount of the other one.
  const ledger = agent.app.services.store.payments
  const offer = await ledger.transferOfferOf(session.session_id)
  const row = await ledger.loadPayment(session.session_id)
  if (row === undefined || offer === undefined) throw new Error('no offer')
  const id = crypto.randomUUID()
  await ledger.addPayment({ ...row, id, captureToken: id, terms: offer.terms })
  const paid = { session_id: id, capture_url: `${agent.url}/pay/${id}` }
  const signed = await signPayment(key, { requirements: requirementsOf(offer.terms) })
  const answer = await fetch(paid.capture_url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(signed),
  })
  expect(answer.status).toBe(200)
  await expect.poll(() => statusOf(agent, paid)).toBe('settled')
  expect(await statusOf(agent, session)).toBe('open')
  const txHash = await chain.transfer(payTo, atomic)
  await expect.poll(() => statusOf(agent, session)).toBe('settled')
  expect(await ledger.loadPayment(session.session_id)).toMatchObject({ txHash })
  expect(await orphans(agent)).toEqual([])
  expect(lines.filter((line) => line.includes('matches no payment session'))).toEqual([])
})

test('a transfer counts after its confirmations, and a late one is listed for a refund', async () => {
  await using agent = await agentOnChain(
    { transfers: true },
    { more: { PAYMENT_TRANSFER_CONFIRMATIONS: '3' } },
  )
  const session = await startSession(agent.url, agent.caller('alice').token)
  const { payTo, atomic } = await requiredTransferOn(session)
  const ledger = agent.app.services.store.payments
  const row = await ledger.loadPayment(session.session_id)
  if (row === undefined) throw new Error('no session')
  const offer = await ledger.transferOfferOf(row.id)
  await chain.transfer(payTo, atomic)
  await chain.mine()
  await new Promise((done) => setTimeout(done, 300))
  expect(await statusOf(agent, session)).toBe('open')
  await chain.mine()
  await expect.poll(() => statusOf(agent, session)).toBe('settled')
  // A session that ended before its transfer was mined.
  const id = crypto.randomUUID()
  const terms = { ...row.terms, atomic: '1000001' }
  const expiresAt = Date.now() - 60_000
  await ledger.addPayment({ ...row, id, captureToken: id, state: 'expired', expiresAt, version: 0 })
  const fromBlock = offer?.fromBlock ?? 0
  await ledger.addTransferOffer({
    sessionId: id,
    owner: row.owner,
    terms,
    fromBlock,
    expiresAt,
    until: Date.now() + 60_000,
  })
  const txHash = await chain.transfer(payTo, 1_000_001n)
  await chain.mine()
  await chain.mine()
  await expect.poll(() => orphans(agent)).toMatchObject([{ reason: 'late_transfer', txHash }])
})

test('a transfer by a signature that the agent did not receive is listed for a refund, and the signature pays nothing', async () => {
  await using agent = await agentOnChain({ transfers: true })
  const session = await startSession(agent.url, agent.caller('alice').token)
  const ledger = agent.app.services.store.payments
  const { atomic } = await requiredTransferOn(session)
  const made = await ledger.transferOfferOf(session.session_id)
  const row = await ledger.loadPayment(session.session_id)
  if (made === undefined || row === undefined) throw new Error('no offer')
  const key = generatePrivateKey()
  const payer = privateKeyToAccount(key).address
  await chain.mint(payer, 10_000_000n)
  const signed = await signPayment(key, { requirements: requirementsOf(made.terms) })
  const txHash = await chain.settle(signed.payload as SignedTransfer)
  const refund = { reason: 'signed_elsewhere', txHash, payer, atomic: `${atomic}` }
  await expect.poll(() => orphans(agent)).toEqual([refund])
  expect(await statusOf(agent, session)).toBe('open')
  const id = crypto.randomUUID()
  await ledger.addPayment({ ...row, id, captureToken: id, terms: made.terms })
  const answer = await fetch(`${agent.url}/pay/${id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(signed),
  })
  expect(await answer.text()).toContain('nonce_already_used')
  expect((await ledger.loadPayment(id))?.state).toBe('open')
})

test('at a node that permits few blocks per request, transfers are found, and blocks that were read are not read again', async () => {
  await using node = await startLimitedNode(chain.url, 4)
  const more = { PAYMENT_RPC_URL: node.url }
  await using agent = await agentOnChain({ transfers: true }, { more })
  const token = agent.caller('alice').token
  const session = await startSession(agent.url, token)
  const { payTo, atomic } = await requiredTransferOn(session)
  await chain.mine(60)
  await chain.transfer(payTo, atomic)
  await chain.mine(60)
  await expect.poll(() => statusOf(agent, session), { timeout: 20_000 }).toBe('settled')
  const head = () => agent.app.services.store.payments.transferProgress(chain.network)
  const readUpTo = await chain.blockNumber()
  await expect.poll(async () => (await head()).readUpTo, { timeout: 20_000 }).toBe(readUpTo)
  node.ranges.length = 0
  await chain.mine()
  await expect.poll(async () => (await head()).readUpTo).toBe(readUpTo + 1)
  expect(Math.min(...node.ranges.map(([from]) => from))).toBeGreaterThan(readUpTo - 4)
})

test('while the chain has not been read for minutes, new sessions have no transfer, and the log says why without the URL of the node', async () => {
  await using node = await startLimitedNode(chain.url, 10_000)
  const lines: string[] = []
  const more = { PAYMENT_RPC_URL: node.url }
  await using agent = await agentOnChain({ transfers: true }, { lines, more })
  const token = agent.caller('alice').token
  expect(await transferOn(await startSession(agent.url, token))).toBeDefined()
  const { payments } = agent.app.services.store
  node.status = 429
  await expect
    .poll(async () => (await payments.transferProgress(chain.network)).behindSince, { timeout: 20_000 })
    .toBeGreaterThan(0)
  await expect.poll(() => lines.join('')).toContain('the node returned HTTP status 429')
  const lease = { network: chain.network, holder: 'only-process', now: Date.now(), until: Date.now() }
  await payments.takeTransferLease({ ...lease, progress: { behindSince: Date.now() - 360_000 } })
  expect(await transferOn(await startSession(agent.url, token))).toBeUndefined()
  node.status = 200
  await expect
    .poll(async () => (await payments.transferProgress(chain.network)).behindSince, { timeout: 30_000 })
    .toBeUndefined()
  expect(await transferOn(await startSession(agent.url, token))).toBeDefined()
  expect(lines.join('')).not.toContain(node.url)
})

test('of many transfers of other amounts, the log names 20 and the number of the others', async () => {
  const lines: string[] = []
  await using agent = await agentOnChain({ transfers: true }, { lines })
  const session = await startSession(agent.url, agent.caller('alice').token)
  const ledger = agent.app.services.store.payments
  const row = await ledger.loadPayment(session.session_id)
  if (row === undefined) throw new Error('no session')
  const fromBlock = await chain.blockNumber()
  for (let sent = 0; sent < 23; sent += 1) await chain.transfer(row.terms.payTo, 1n)
  const terms = { ...row.terms, atomic: '1000001' }
  const expiresAt = Date.now() + 60_000
  const offer = { sessionId: row.id, owner: row.owner, terms, fromBlock, expiresAt, until: expiresAt }
  await ledger.addTransferOffer(offer)
  await chain.transfer(row.terms.payTo, 1_000_001n)
  await expect.poll(() => statusOf(agent, session)).toBe('settled')
  await expect.poll(() => lines.filter((line) => line.includes('were not examined'))).toHaveLength(1)
  expect(lines.filter((line) => line.includes('a transfer matches no payment session'))).toHaveLength(20)
})

test('one caller reserves at most 100 amounts', async () => {
  await using agent = await agentOnChain({ transfers: true })
  const ledger = agent.app.services.store.payments
  const session = await startSession(agent.url, agent.caller('alice').token)
  const row = await ledger.loadPayment(session.session_id)
  if (row === undefined) throw new Error('no session')
  const { owner, terms, expiresAt = 0 } = row
  const offer = { owner, fromBlock: 1, expiresAt, until: expiresAt }
  for (let at = 0; at < 100; at += 1) {
    const reserved = { ...terms, atomic: `${2_000_000 + at}` }
    await ledger.addTransferOffer({ ...offer, sessionId: `${at}`, terms: reserved })
  }
  expect(await transferOn(session)).toBeUndefined()
  const other = await startSession(agent.url, agent.caller('bob').token)
  expect(await transferOn(other)).toBeDefined()
})

test('offers on a network that the agent no longer uses end with their time', async () => {
  await using agent = await agentOnChain({ transfers: true })
  const ledger = agent.app.services.store.payments
  const terms = { ...chain.price('1', newAddress()), network: 'eip155:1', atomic: '1000001' }
  const offer = { owner: 'o', fromBlock: 1, expiresAt: 1, terms: terms as PaymentTerms }
  await ledger.addTransferOffer({ ...offer, sessionId: 'past', until: 1 })
  const later = { ...offer, terms: { ...offer.terms, atomic: '1000002' }, until: Date.now() + 60_000 }
  await ledger.addTransferOffer({ ...later, sessionId: 'later' })
  await expect.poll(() => ledger.transferOfferOf('past')).toBeUndefined()
  expect(await ledger.transferOfferOf('later')).toBeDefined()
})

test('without PAYMENT_RPC_URL, the log of an agent that accepts transfers says that it offers none', async () => {
  const lines: string[] = []
  const more = { PAYMENT_RPC_URL: '', PAYMENT_SIGNER_KEY_FILE: '', PAYMENT_SANDBOX: 'yes' }
  await using agent = await agentOnChain({ transfers: true }, { lines, more })
  expect(agent.url).toBeTruthy()
  expect(lines.join('')).toContain('PAYMENT_RPC_URL is not set')
})

test('a session has the QR code of its page if its author did not opt in', async () => {
  await using agent = await agentOnChain({})
  const session = await startSession(agent.url, agent.caller('alice').token)
  expect(await transferOn(session)).toBeUndefined()
  expect(await (await fetch(session.capture_url)).text()).toContain('QR code with the address of this page')
})

const source = (price: object) => `export default {
  name: 'paid', description: 'is paid by transfers', executionCost: ${JSON.stringify(price)},
  skills: [{ id: 'work', name: 'Work', description: 'Works' }], handle: ({ text }) => text,
}`

/** Returns the transactions of the payments in these states. */
async function transactions(agent: KillableAgent): Promise<string[]> {
  const operator = agent.identityProvider.issue('operator', { scope: 'agent:admin' })
  const headers = { authorization: `Bearer ${operator}` }
  const lists = ['settled', 'payment-orphaned'].map(async (state) => {
    const answer = await fetch(`${agent.url}/payments?state=${state}&limit=1000`, { headers })
    return ((await answer.json()) as { payments: { tx_hash: string }[] }).payments
  })
  return (await Promise.all(lists)).flat().map(({ tx_hash }) => tx_hash)
}

test('after kill -9 at any time, each transfer is counted once', async () => {
  const price = { ...chain.price('1', newAddress()), transfers: true }
  await using agent = await KillableAgent.start(source(price), { ...env, ...atOnce })
  const token = agent.identityProvider.issue('alice')
  const made: string[] = []
  for (const waitMs of [0, 4900, 5000, 5100]) {
    const { payTo, atomic } = await requiredTransferOn(await startSession(agent.url, token))
    made.push(await chain.transfer(payTo, atomic))
    await new Promise((done) => setTimeout(done, waitMs))
    await agent.kill()
    await agent.start()
  }
  await expect.poll(async () => (await transactions(agent)).sort(), { timeout: 30_000 }).toEqual(made.sort())
}, 180_000)

test.skipIf(!hasServers)(
  'two processes count each transfer once (needs mongod, redis-server)',
  async () => {
    await using servers = await startServers()
    const urls = { STORE_URL: servers.mongodb.newUrl(), REDIS_URL: servers.redis.url }
    const price = { ...chain.price('1', newAddress()), transfers: true }
    await using first = await KillableAgent.start(source(price), { ...env, ...atOnce, ...urls })
    await using second = await first.another()
    const token = first.identityProvider.issue('alice')
    const made: string[] = []
    const amounts = new Set<bigint>()
    for (const agent of [first, second, first, second]) {
      const { payTo, atomic } = await requiredTransferOn(await startSession(agent.url, token))
      amounts.add(atomic)
      made.push(await chain.transfer(payTo, atomic))
    }
    expect(amounts.size).toBe(4)
    await expect
      .poll(async () => (await transactions(second)).sort(), { timeout: 30_000 })
      .toEqual(made.sort())
  },
  180_000,
)
