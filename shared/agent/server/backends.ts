import path from 'node:path'
import type { EventBus } from '@parley/engine/events/event-bus'
import { InProcessEventBus } from '@parley/engine/events/in-process'
import type { Payments } from '@parley/engine/payments/payments'
import { InProcessScheduler } from '@parley/engine/queue/in-process'
import type { Scheduler } from '@parley/engine/queue/scheduler'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import type { Store, TaskRecord } from '@parley/engine/store/store'
import type { TaskEngine } from '@parley/engine/tasks/engine'
import { agentId } from '@parley/kit/did/did'
import type { AgentConfig } from '@parley/kit/process/config'
import type { Log } from '@parley/kit/process/log'
import type { Registry } from 'prom-client'
import type { Agent } from '../author/agent.ts'
import { allPrices, isPaid } from '../author/price-of.ts'
import type { PaymentPrompt, PaymentRequest } from './runner/payment-prompt.ts'

export interface StoreBackend {
  store: Store
  /** Its name in `/health`. */
  backend: 'sqlite' | 'mongodb' | 'memory'
}

/**
 * Opens the agent's store: a file of this process, a MongoDB database that processes and machines share, or memory for
 * tests. The MongoDB driver is loaded only if it is used.
 * @param options.storeUrl STORE_URL, `memory:` or a `mongodb://` URL; if undefined, the embedded store in `storeDir` is used
 * @throws DatabaseRefused when the store cannot be opened
 */
export async function openStore(options: {
  storeUrl: string | undefined
  storeDir: string
  agentId: string
  log: Pick<Log, 'warn'>
}): Promise<StoreBackend> {
  const { storeUrl: url, storeDir, agentId: id, log } = options
  if (url === 'memory:') {
    log.warn(
      'STORE_URL=memory: keeps tasks, payments and webhooks in memory only; a restart loses all of them',
    )
    const { openMemoryStore } = await import('@parley/engine/store/memory/store')
    return { store: openMemoryStore(), backend: 'memory' }
  }
  if (url === undefined)
    return { store: await openSqliteStore({ file: path.join(storeDir, 'agent.db') }), backend: 'sqlite' }
  const { openMongodbStore } = await import('@parley/engine/store/mongodb/store')
  return { store: await openMongodbStore({ url, agentId: id }), backend: 'mongodb' }
}

export interface QueueBackend {
  scheduler: Scheduler
  bus: EventBus
  /** Its name in `/health`. */
  backend: 'in-process' | 'bullmq'
}

/**
 * Opens the task queue and the event bus, in this process or on Redis for all the agent's processes. The Redis clients are
 * loaded only if they are used.
 * @param options.redisUrl REDIS_URL; undefined if this is the only process of its agent
 * @param options.concurrency the number of tasks that this process runs at the same time
 * @throws Error when Redis does not answer
 */
export async function openQueue(
  options: { redisUrl: string | undefined; agentId: string; concurrency: number; log: Log },
  stack: AsyncDisposableStack,
): Promise<QueueBackend> {
  const { redisUrl: url, agentId: id, concurrency, log } = options
  if (url === undefined) {
    const bus = stack.use(new InProcessEventBus())
    return { bus, scheduler: stack.use(new InProcessScheduler(concurrency)), backend: 'in-process' }
  }
  const { openRedisEventBus } = await import('@parley/engine/events/redis')
  const { openBullmqScheduler } = await import('@parley/engine/queue/bullmq')
  const bus = stack.use(await openRedisEventBus({ url, agentId: id, log }))
  const scheduler = stack.use(await openBullmqScheduler({ url, agentId: id, concurrency, log }))
  return { bus, scheduler, backend: 'bullmq' }
}

export interface PaymentBackend {
  payments: Payments
  /** Makes the request for a payment during a task. */
  prompt: (record: TaskRecord, request: PaymentRequest) => PaymentPrompt
  isStillPaid: (record: TaskRecord) => Promise<boolean>
}

/**
 * Sets up payments; returns undefined for an agent without prices. The payment code is loaded only if it is used.
 * @throws ConfigError when no facilitator is configured
 */
export async function openPayments(parts: {
  agent: Agent
  did: string
  store: Store
  engine: TaskEngine
  scheduler: Scheduler
  config: AgentConfig
  log: Log
  registry: Registry
  baseUrl: () => string
}): Promise<PaymentBackend | undefined> {
  const { agent, did, store, engine, scheduler, config, log, registry, baseUrl } = parts
  if (!isPaid(agent)) return undefined
  const [{ selectFacilitator }, { Payments: Opened }, { paidTasks }, { failedPrompt, paymentPrompt }] =
    await Promise.all([
      import('@parley/engine/payments/facilitators/select-facilitator'),
      import('@parley/engine/payments/payments'),
      import('@parley/engine/tasks/paid-tasks'),
      import('./runner/payment-prompt.ts'),
    ])
  const settings = { ...config.payments, agentId: agentId(did) }
  const facilitator = await selectFacilitator(settings, allPrices(agent), store.payments)
  const promptParts = () => ({ agent, payments, url: baseUrl() })
  const prompt: PaymentBackend['prompt'] = (record, request) => paymentPrompt(promptParts(), record, request)
  const payments: Payments = new Opened({
    store: store.payments,
    facilitator,
    tasks: paidTasks({
      engine,
      scheduler,
      log,
      prompt: (record, refusal) => failedPrompt(promptParts(), record, refusal),
    }),
    log,
    registry,
    agentId: agentId(did),
    shared: !store.exclusive,
    transferPrices: allPrices(agent).filter(({ transfers }) => transfers === true),
    ...config.payments.timing,
  })
  if (facilitator.sandbox) log.warn('PAYMENT_SANDBOX is set: payments are test money and have no value')
  const isStillPaid: PaymentBackend['isStillPaid'] = ({ id, payments: ids = [] }) =>
    payments.isStillPaid(id, ids)
  return { payments, prompt, isStillPaid }
}
