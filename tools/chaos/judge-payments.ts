import type { Cluster } from '@parley/e2e/harness/cluster'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { toAtomic } from '@parley/wire/model/amount'
import { operatorToken } from './clients.ts'
import { agentPath } from './cluster.ts'
import type { Acknowledged } from './load.ts'
import { settled } from './settled.ts'

export interface PaymentFindings {
  /** Acknowledged purchases, and payments without a task that the ledger lists for refund. */
  payments: number
  orphaned: number
  /** Differences between the ledger, the receipts, the tasks and the test money. */
  unequal: string[]
}

/** A client that pays. */
export interface Payer {
  address: string
  /** Purchases reported to the client as spent without a task. */
  paidWithoutTask: number
  acknowledged: Acknowledged[]
  /** All of the client's tasks. */
  tasks: WireTask[]
}

export interface Row {
  state: string
  tx_hash?: string
  task_id?: string
  payer?: string
  amount_atomic: string
}

const moneyMoved = ['settled', 'spent', 'earned', 'payment-orphaned', 'refunded']
const notOver = ['claimed', 'settling', 'unknown', 'settled', 'spent']
const others = ['open', 'expired', 'failed', 'earned', 'payment-orphaned', 'refunded']
/** Recovery checks a payment 90 s after its process died between claim and settlement. */
const patienceMs = 120_000
const price = { amount: '0.01', filledWith: '1000', decimals: 6 }

/** Compares the ledger with the receipts, the tasks and the payers' remaining money. */
export async function judgePayments(cluster: Cluster, payers: Payer[]): Promise<PaymentFindings> {
  const rows: Row[] = []
  const open = () => rows.filter(({ state }) => notOver.includes(state))
  const read = async () => {
    rows.splice(0, rows.length, ...(await ledger(cluster)))
    return open().length === 0
  }
  await settled(read, () => open().length, patienceMs)
  const unequal = open().map(({ state, task_id: id }) => `a payment is ${state}, task ${id}`)
  const paid = rows.filter(({ state }) => moneyMoved.includes(state))
  unequal.push(...twice(paid.map(({ tx_hash: hash = 'none' }) => hash)).map((hash) => `twice: ${hash}`))
  for (const payer of payers) {
    unequal.push(...judgeWork(payer, paid), ...(await judgePurse(cluster, payer, paid)))
  }
  const payments = payers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0)
  const orphaned = paid.filter(({ state }) => state === 'payment-orphaned').length
  return { payments, orphaned, unequal }
}

/** Checks that each task was paid once, payments for completed tasks are earned, and each transfer belongs to a task. */
export function judgeWork({ address, acknowledged, tasks, paidWithoutTask }: Payer, paid: Row[]): string[] {
  const found: string[] = []
  const own = paid.filter(({ payer }) => payer?.toLowerCase() === address.toLowerCase())
  for (const { id, status } of tasks) {
    const [row, ...more] = own.filter((one) => one.task_id === id)
    if (row === undefined) found.push(`done for nothing: task ${id}`)
    if (more.length > 0) found.push(`paid twice: task ${id}`)
    const due = status.state === 'completed' ? 'earned' : 'payment-orphaned'
    if (row !== undefined && row.state !== due) found.push(`${row.state}: task ${id} is ${status.state}`)
  }
  for (const { taskId, txHash } of acknowledged) {
    const row = own.find((one) => one.task_id === taskId)
    if (txHash !== undefined && row?.tx_hash !== txHash) found.push(`receipt of another: task ${taskId}`)
  }
  const ids = new Set(tasks.map(({ id }) => id))
  const idle = own.filter((row) => !ids.has(row.task_id ?? ''))
  found.push(
    ...idle.filter(({ state }) => state !== 'payment-orphaned').map((row) => `for no task: ${row.tx_hash}`),
  )
  if (idle.length !== paidWithoutTask)
    found.push(`${paidWithoutTask} payments without a task, the ledger has ${idle.length}`)
  return found
}

/** Checks that the payer spent exactly the amount in the ledger, to the atomic unit. */
async function judgePurse(cluster: Cluster, { address }: Payer, paid: Row[]): Promise<string[]> {
  const answer = await fetch(`${cluster.url}${agentPath}/api/test-wallet/${address}`)
  const { balances } = (await answer.json()) as { balances: { amount: string }[] }
  const { decimals, filledWith } = price
  const left = toAtomic(balances[0]?.amount ?? '0', decimals)
  const taken = paid
    .filter(({ payer }) => payer?.toLowerCase() === address.toLowerCase())
    .reduce((sum, row) => sum + BigInt(row.amount_atomic), 0n)
  const spent = toAtomic(filledWith, decimals) - left
  return spent === taken ? [] : [`${address} paid ${spent}, the ledger took ${taken}`]
}

async function ledger(cluster: Cluster): Promise<Row[]> {
  const token = await operatorToken(cluster).get()
  const all: Row[] = []
  for (const state of [...notOver, ...others]) {
    for (let cursor: number | undefined = 0; cursor !== undefined; ) {
      const url: string = `${cluster.url}${agentPath}/payments?state=${state}&limit=1000&cursor=${cursor}`
      const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
      if (!answer.ok) throw new Error(`GET /payments: HTTP ${answer.status} ${await answer.text()}`)
      const page = (await answer.json()) as { payments: Row[]; next_cursor?: number }
      all.push(...page.payments)
      cursor = page.next_cursor
    }
  }
  return all
}

function twice(all: string[]): string[] {
  const seen = new Set<string>()
  return all.filter((one) => seen.has(one) || !seen.add(one))
}
