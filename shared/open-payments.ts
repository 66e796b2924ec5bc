import type { Registry } from 'prom-client'
import type { Agent } from './handler/agent.ts'
import { allPrices, isPaid } from './handler/price-of.ts'
import { agentId } from './identity/did.ts'
import type { Payments } from './payments/payments.ts'
import type { AgentConfig } from './process/config.ts'
import type { Log } from './process/log.ts'
import type { Part } from './protocol/task.ts'
import type { Scheduler } from './scheduler/scheduler.ts'
import type { Store, TaskRecord } from './store/store.ts'
import type { TaskEngine } from './tasks/engine.ts'
import type { Asked } from './tasks/payment-prompt.ts'

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
    import('./payments/open-facilitator.ts'),
    import('./payments/payments.ts'),
    import('./tasks/work-paid-for.ts'),
    import('./tasks/payment-prompt.ts'),
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
