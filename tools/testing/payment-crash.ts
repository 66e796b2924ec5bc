import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { AgentClient } from '@parley/client/internal/client'
import { type PaymentRequirements, payingFetch } from '@parley/client/internal/paying-fetch'
import { signPayment } from '@parley/engine/payments/x402/wallet'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { TestChain } from './chain.ts'
import { KillableAgent } from './killable-agent.ts'

export interface PaymentCrashFigures {
  kills: number
  /** Number of transfers on the chain. */
  paid: number
  /** Number of transfers with a completed task. */
  earned: number
  /** Number of transfers listed for refund. */
  orphaned: number
  /** Ledger rows without a transfer. */
  unpaid: number
  /** Transfers that the ledger does not list as earned or orphaned. */
  forgotten: number
  /** Ledger rows with a transfer that is not on the chain. */
  invented: number
  /** Earned payments that have no task, or a task that is not completed. */
  notDone: number
  /** Ledger rows that never reached a final state. */
  stuck: number
}

interface Row {
  state: string
  tx_hash?: string
  task_id?: string
}

const ends = ['earned', 'payment-orphaned']
const others = ['claimed', 'settling', 'unknown', 'settled', 'spent']

/**
 * Repeatedly kills (SIGKILL) an agent that is paid on a chain after a transfer is on the chain. Then it compares
 * the ledger with the chain.
 */
export async function paymentCrashRun(options: {
  kills: number
  /** Upper limit of the random delay between the transfer and the kill. */
  killWithinMs: number
  say: (text: string) => void
}): Promise<PaymentCrashFigures> {
  await using stack = new AsyncDisposableStack()
  const chain = stack.use(await TestChain.start())
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-payment-crash-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const signerKeyFile = path.join(folder, 'signer.key')
  await writeFile(signerKeyFile, chain.signerKey, { mode: 0o600 })
  const payTo = privateKeyToAccount(generatePrivateKey()).address
  const env = { PAYMENT_RPC_URL: chain.url, PAYMENT_SIGNER_KEY_FILE: signerKeyFile }
  const agent = stack.use(await KillableAgent.start(sourceOf(chain.price('0.01', payTo)), env))
  const client = await payingClient(chain, agent)
  for (let kill = 1; kill <= options.kills; kill += 1) {
    const before = (await chain.paidTo(payTo)).length
    // The agent may be killed during any request.
    const sends = Array.from({ length: 3 }, () => client.send('work').catch(() => undefined))
    while ((await chain.paidTo(payTo)).length === before) await pause(2)
    await pause(Math.random() * options.killWithinMs)
    await agent.kill()
    await Promise.all(sends)
    await agent.start()
    options.say(`kill ${kill}: up again`)
  }
  return await held(agent, chain, payTo, options.kills)
}

const sourceOf = (price: object) => `export default {
  name: 'paid', description: 'Is paid on a chain',
  skills: [{ id: 'work', name: 'Work', description: 'Works' }],
  executionCost: ${JSON.stringify(price)},
  handle: async () => { await new Promise((done) => setTimeout(done, 30)); return 'done' },
}`

/** Lets one account pay for each message that requires payment. */
async function payingClient(chain: TestChain, agent: KillableAgent): Promise<AgentClient> {
  const key = generatePrivateKey()
  await chain.mint(privateKeyToAccount(key).address, 10n ** 12n)
  const pay = ({ accepts: [requirements] }: PaymentRequirements) =>
    requirements === undefined
      ? Promise.resolve(undefined)
      : signPayment(key, { requirements: { ...requirements, scheme: 'exact' } })
  const token = agent.identityProvider.issue('did:parley:crash:agent:payer')
  return new AgentClient({ url: agent.url, token, fetch: payingFetch(pay), requestTimeoutMs: 15_000 })
}

async function held(
  agent: KillableAgent,
  chain: TestChain,
  payTo: string,
  kills: number,
): Promise<PaymentCrashFigures> {
  const operator = agent.identityProvider.issue('operator', { scope: 'agent:admin agent:read agent:write' })
  const rowsIn = (state: string) => rowsOf(agent.url, operator, state)
  const open = async () => (await Promise.all(others.map(rowsIn))).flat()
  // Recovery checks payments without a task only rarely, but always at startup.
  for (let round = 0; round < 20 && (await open()).length > 0; round += 1) {
    await pause(3000)
    if ((await open()).length === 0) break
    await agent.kill()
    await agent.start()
  }
  const stuck = (await open()).length
  const [earned = [], orphaned = []] = await Promise.all(ends.map(rowsIn))
  const failed = await rowsIn('failed')
  const onChain = new Set((await chain.paidTo(payTo)).map(({ txHash }) => txHash.toLowerCase()))
  const inLedger = [...earned, ...orphaned].map((row) => row.tx_hash?.toLowerCase() ?? '')
  const forgotten = [...onChain].filter((hash) => !inLedger.includes(hash)).length
  const invented =
    inLedger.filter((hash) => !onChain.has(hash)).length + (inLedger.length - new Set(inLedger).size)
  const reader = new AgentClient({
    url: agent.url,
    token: agent.identityProvider.issue('did:parley:crash:agent:payer'),
  })
  const done = await Promise.all(
    earned.map(async ({ task_id: id = '' }) => (await reader.get(id)).status.state === 'completed'),
  )
  return {
    kills,
    paid: onChain.size,
    earned: earned.length,
    orphaned: orphaned.length,
    unpaid: failed.length,
    forgotten,
    invented,
    notDone: done.filter((one) => !one).length,
    stuck,
  }
}

async function rowsOf(url: string, token: string, state: string): Promise<Row[]> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${url}/payments?state=${state}&limit=1000`, { headers })
  if (!answer.ok) throw new Error(`GET /payments: HTTP ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { payments: Row[] }).payments
}
