/**
 * Payments in test money per second through `message/send`: signature (EIP-712) verified, nonce claimed, settled in the
 * sandbox ledger, task durable and completed. Compared with the same agent without a price. Payments are signed before
 * the load starts and sent once. The cost of verification is measured separately.
 */
import path from 'node:path'
import { isSignedByPayer } from '@parley/engine/payments/facilitators/typed-data'
import { nonceKeyOf } from '@parley/engine/payments/x402/match-terms'
import { encodePayment, type SignedPayment, signPayment } from '@parley/engine/payments/x402/wallet'
import type { Requirements } from '@parley/engine/payments/x402/x402'
import type { PaymentTerms, SignedTransfer } from '@parley/engine/store/payment-store'
import { generatePrivateKey } from 'viem/accounts'
import { AgentUnderTest, sendParams } from './support/agent-under-test.ts'
import { httpRequest, LoadGenerator } from './support/load.ts'
import { connections, quick } from './support/measure.ts'
import { percent, printTable, saveResults } from './support/report.ts'
import { tokenOf } from './support/tokens.ts'

const [warmUp, measured] = quick ? [200, 600] : [1000, 3000]
const paidEcho = path.join(import.meta.dirname, 'support/paid-echo')
const mustHold = '"state":"submitted"'

interface Measured {
  perSecond: number
  cpuMicros: number
  p50Ms: number
  p99Ms: number
}

const requirements: Requirements = {
  scheme: 'exact',
  network: 'eip155:84532',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  amount: '1',
  payTo: '0x000000000000000000000000000000000000dEaD',
  maxTimeoutSeconds: 3600,
  extra: { name: 'USDC', version: '2' },
}

const privateKey = generatePrivateKey()
const payments: SignedPayment[] = []
for (let at = 0; at < warmUp + measured; at += 1)
  payments.push(await signPayment(privateKey, { requirements }))

const paid = await run(
  paidEcho,
  payments.map((payment) => ({ 'PAYMENT-SIGNATURE': encodePayment(payment) })),
)
const free = await run(
  undefined,
  payments.map(() => ({})),
)
const verifyMicros = await verification()
const row = (name: string, { perSecond, cpuMicros, p50Ms, p99Ms }: Measured) => [
  name,
  String(Math.round(perSecond)),
  cpuMicros.toFixed(0),
  p50Ms.toFixed(1),
  p99Ms.toFixed(1),
]
printTable(
  ['agent', 'message/send per second', 'CPU µs/request', 'p50 ms', 'p99 ms'],
  [row('paid in the sandbox', paid), row('free', free)],
)
const share = verifyMicros / paid.cpuMicros
console.log(
  `one verification: ${verifyMicros.toFixed(0)} µs, ${percent(share)} of the CPU time of a paid message/send`,
)
await saveResults('payments', { paid, free, verifyMicros, verificationShare: share })

/** Sends every request once, over the usual number of connections. */
async function run(folder: string | undefined, headers: Record<string, string>[]): Promise<Measured> {
  await using agent = await AgentUnderTest.start({
    ...(folder !== undefined && { folder }),
    env: { PAYMENT_SANDBOX: 'yes' },
  })
  using generator = new LoadGenerator()
  const requests = headers.map((more) =>
    httpRequest({
      path: '/',
      headers: { Authorization: `Bearer ${tokenOf(0)}`, ...more },
      body: { jsonrpc: '2.0', id: '1', method: 'message/send', params: sendParams() },
    }),
  )
  const load = { address: agent.address, connections, mustHold }
  await generator.run({ ...load, requests: requests.slice(0, warmUp), total: warmUp })
  const cpu = agent.server.cpuMicros
  const result = await generator.run({ ...load, requests: requests.slice(warmUp), total: measured })
  const cpuMicros = (agent.server.cpuMicros - cpu) / result.accepted
  await agent.waitForCompleted(warmUp + measured)
  return { perSecond: result.accepted / result.seconds, cpuMicros, p50Ms: result.p50Ms, p99Ms: result.p99Ms }
}

/** CPU time of one signature check, after warm-up. */
async function verification(): Promise<number> {
  const { network, asset, payTo, extra, amount: atomic } = requirements
  const terms: PaymentTerms = { amount: '0.000001', atomic, decimals: 6, asset, network, payTo, extra }
  const verify = async (some: SignedPayment[]) => {
    for (const { payload } of some) {
      const transfer = payload as SignedTransfer
      const good = await isSignedByPayer({
        terms,
        transfer,
        nonceKey: nonceKeyOf(terms, transfer.authorization),
      })
      if (!good) throw new Error('invalid signature')
    }
  }
  const some = payments.slice(0, 300)
  await verify(some)
  const before = process.cpuUsage()
  await verify(some)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / some.length
}
