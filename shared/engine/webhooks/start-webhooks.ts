import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import type { Log } from '@parley/kit/process/log'
import type { WebhookMetrics } from '@parley/kit/process/webhook-metrics'
import { MemoryWebhooks } from '../store/memory/webhooks.ts'
import type { Store } from '../store/store.ts'
import { checkReceiver } from './check-receiver.ts'
import { Deliverer } from './deliverer.ts'
import { WebhookDispatcher } from './dispatcher.ts'
import type { GlobalWebhook } from './event-buffer.ts'
import { globalProgress } from './global-progress.ts'
import { warnIfRefused } from './global-webhook.ts'
import { Registrations, type RegistrationsOptions } from './registrations.ts'

/** An agent's push notifications. Drain the dispatcher before disposal, which closes the connections. */
export interface Webhooks extends AsyncDisposable {
  registrations: Registrations
  dispatcher: WebhookDispatcher
  /** The engine calls this method after each commit. */
  committed: WebhookDispatcher['committed']
}

/** Resolves when the stored configs have been loaded, so that no event of a running task is missed. */
export async function startWebhooks(parts: {
  store: Store
  allowed: AllowedHosts
  globalWebhook: GlobalWebhook | undefined
  metrics: WebhookMetrics
  log: Log
  agentId: string
  /** The value of REDIS_URL. With Redis, the processes of an agent share short-lived configs. */
  redisUrl: string | undefined
}): Promise<Webhooks> {
  const { store, allowed, globalWebhook, metrics, log } = parts
  await using stack = new AsyncDisposableStack()
  const check = (receiver: GlobalWebhook) => checkReceiver(receiver, { allowed })
  const registrations = new Registrations({
    stored: store.webhooks,
    ...(await openShortLived(parts, stack)),
    check,
    shared: !store.exclusive,
    hasGlobal: globalWebhook !== undefined,
    countEvents: (taskIds) => store.countEvents(taskIds),
  })
  await registrations.listenToAnnouncements()
  const deliverer = stack.use(new Deliverer({ allowed }))
  const dispatcher = new WebhookDispatcher({
    registrations,
    loadTask: (id) => store.loadTask(id),
    deliverer,
    globalWebhook,
    metrics,
    log,
  })
  // The check runs in the background, because it may take time to resolve the host.
  if (globalWebhook !== undefined) void warnIfRefused(globalWebhook, check, log)
  await dispatcher.start()
  const open = stack.move()
  return {
    registrations,
    dispatcher,
    committed: (before, after) => dispatcher.committed(before, after),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/**
 * Opens the store for configs that live as long as their task. It is in memory for a single process,
 * otherwise in Redis.
 */
async function openShortLived(
  { store, redisUrl: url, agentId, globalWebhook, log }: Parameters<typeof startWebhooks>[0],
  stack: AsyncDisposableStack,
): Promise<Pick<RegistrationsOptions, 'memory' | 'globalProgress' | 'announcements'>> {
  if (url === undefined || store.exclusive) return { memory: new MemoryWebhooks() }
  const { openRedisWebhooks } = await import('../store/redis/webhooks.ts')
  const memory = stack.use(await openRedisWebhooks({ url, agentId, log }))
  if (globalWebhook === undefined) {
    const { openRedisAnnouncements } = await import('./redis-announcements.ts')
    return { memory, announcements: stack.use(await openRedisAnnouncements({ url, agentId, log })) }
  }
  const progress = stack.use(await openRedisWebhooks({ url, agentId, log, name: 'global-webhook' }))
  return { memory, globalProgress: globalProgress(progress, globalWebhook) }
}
