import type { Payments } from '@parley/engine/payments/payments'
import type { Scheduler } from '@parley/engine/queue/scheduler'
import type { Store, TaskRecord } from '@parley/engine/store/store'
import type { TaskEngine } from '@parley/engine/tasks/engine'
import { agentId } from '@parley/kit/did/did'
import type { AgentConfig } from '@parley/kit/process/config'
import type { Log } from '@parley/kit/process/log'
import type { Part } from '@parley/wire/model/task'
import type { Registry } from 'prom-client'
import type { Agent } from '../author/agent.ts'
import { allPrices, isPaid } from '../author/price-of.ts'
import type { Asked } from './runner/payment-prompt.ts'

interface Parts {
  agent: Agent
  did: string
  store: Store
  engine: TaskEngine
  scheduler: Scheduler
  config: AgentConfig
  log: Log
  registry: Registry
}

export interface OpenedPayments {
  payments: Payments
  prompt: (record: TaskRecord, asked: Asked) => Part
  isStillPaid: (record: TaskRecord) => Promise<boolean>
}

/**
 * Undefined where nothing has a price; what payments stand on is loaded only where something has.
 * @throws ConfigError when nobody is configured who settles
 */
export async function openPayments(parts: Parts): Promise<OpenedPayments | undefined> {
  const { agent, did, store, engine, scheduler, config, log, registry } = parts
  if (!isPaid(agent)) return undefined
  const [{ openFacilitator }, { Payments: Opened }, { workPaidFor }, { paymentPrompt }] = await Promise.all([
    import('@parley/engine/payments/open-facilitator'),
    import('@parley/engine/payments/payments'),
    import('@parley/engine/tasks/work-paid-for'),
    import('./runner/payment-prompt.ts'),
  ])
  const settings = { ...config.payments, agentId: agentId(did) }
  const facilitator = await openFacilitator(settings, allPrices(agent), store.payments)
  const prompt = (record: TaskRecord, asked: Asked) => paymentPrompt(agent, payments, record, asked)
  const work = workPaidFor({ engine, scheduler, log, prompt })
  const payments: Payments = new Opened({
    store: store.payments,
    facilitator,
    work,
    log,
    registry,
    agentId: agentId(did),
    shared: !store.exclusive,
    ...config.payments.timing,
  })
  if (facilitator.sandbox)
    log.warn('payments are test money (PAYMENT_SANDBOX): nothing that is paid here is worth anything')
  const isStillPaid = ({ id, payments: ids = [] }: TaskRecord) => payments.isStillPaid(id, ids)
  return { payments, prompt, isStillPaid }
}
