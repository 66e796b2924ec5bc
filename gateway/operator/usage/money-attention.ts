import { RecentMap } from '@parley/kit/did/recent-map'
import type { AgentDeliveries } from '../deliveries/deliveries.ts'
import type { Attention } from '../overview/attention.ts'
import type { CallerView } from '../view.ts'
import type { AgentPayments } from './payments.ts'

export interface MoneySources {
  deliveries: Pick<AgentDeliveries, 'list'>
  payments: Pick<AgentPayments, 'list'>
}

const countedMax = 50
/** Several open consoles repeat the overview, which reads all agents only once in this time. */
const [freshMs, viewsMax] = [10_000, 1000]

/** The webhooks that fail or lost events, and the payments that need a decision or a refund. */
export function moneyAttention(sources: MoneySources): (view: CallerView) => Promise<Attention[]> {
  const recent = new RecentMap<string, { until: number; read: Promise<Attention[]> }>(viewsMax)
  return (view) => {
    const key = view.owner ?? ''
    const known = recent.get(key)
    if (known !== undefined && known.until > Date.now()) return known.read
    const read = readAttention(sources, view)
    recent.set(key, { until: Date.now() + freshMs, read })
    return read
  }
}

async function readAttention({ deliveries, payments }: MoneySources, view: CallerView): Promise<Attention[]> {
  const [failing, dropped, ledger] = await Promise.all([
    deliveries.list(view, { state: 'failing', limit: countedMax }),
    deliveries.list(view, { state: 'dropped', limit: countedMax }),
    payments.list(view, { limit: 1 }),
  ])
  const webhooks = failing.deliveries.length + dropped.deliveries.length
  const [first] = [...failing.deliveries, ...dropped.deliveries]
  const one = first && { agent: webhooks === 1 ? first.agent : null, since: first.last_attempt_at }
  const atLeast = webhooks >= countedMax ? 'At least ' : ''
  const all: (Attention | undefined)[] = [
    one && {
      kind: 'delivery_failing',
      ...one,
      text: `${atLeast}${webhooks} ${webhooks === 1 ? 'webhook fails or has' : 'webhooks fail or have'} dropped events. Check the receiver, then send the events again.`,
      count: webhooks,
      path: `/console/webhooks?state=${failing.deliveries.length > 0 ? 'failing' : 'dropped'}`,
      command: 'npx parley deliveries --state dropped',
    },
    paymentAttention('payment_orphaned', ledger.counts),
    paymentAttention('payment_unknown', ledger.counts),
  ]
  return all.filter((entry) => entry !== undefined)
}

const texts = {
  payment_orphaned: {
    state: 'payment-orphaned',
    one: 'payment was settled, but its work failed. Refund it.',
    several: 'payments were settled, but their work failed. Refund them.',
  },
  payment_unknown: {
    state: 'unknown',
    one: 'settlement is uncertain. Look up the transaction and decide it.',
    several: 'settlements are uncertain. Look up the transactions and decide them.',
  },
} as const

function paymentAttention(kind: keyof typeof texts, counts: Record<string, number>): Attention | undefined {
  const { state, one, several } = texts[kind]
  const count = counts[state] ?? 0
  if (count === 0) return undefined
  return {
    kind,
    text: `${count} ${count === 1 ? one : several}`,
    agent: null,
    since: null,
    count,
    path: `/console/money?state=${state}`,
    command: `npx parley payments --state ${state}`,
  }
}
