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
import { warnOfRefused } from './global-webhook.ts'
import { Registrations, type RegistrationsOptions } from './registrations.ts'

/** The push notifications of an agent, put together. Disposal closes the connections: drain the dispatcher before. */
export interface Webhooks extends AsyncDisposable {
  registrations: Registrations
  dispatcher: WebhookDispatcher
  /** For the engine. */
  committed: WebhookDispatcher['committed']
}

/** Stored configs are loaded when it resolves, so that no task runs unheard. */
export async function startWebhooks(parts: {
  store: Store
  allowed: AllowedHosts
  globalWebhook: GlobalWebhook | undefined
  metrics: WebhookMetrics
  log: Log
  agentId: string
  /** REDIS_URL: where the processes of an agent that share a store share what the store does not keep. */
  redisUrl: string | undefined
}): Promise<Webhooks> {
  const { store, allowed, globalWebhook, metrics, log } = parts
  await using stack = new AsyncDisposableStack()
  const check = (receiver: GlobalWebhook) => checkReceiver(receiver, { allowed })
  const registrations = new Registrations({
    stored: store.webhooks,
    ...(await shortLived(parts, stack)),
    check,
    shared: !store.exclusive,
    hasGlobal: globalWebhook !== undefined,
    countEvents: (taskIds) => store.countEvents(taskIds),
  })
  await registrations.hearOthers()
  const deliverer = stack.use(new Deliverer({ allowed }))
  const dispatcher = new WebhookDispatcher({
    registrations,
    loadTask: (id) => store.loadTask(id),
    deliverer,
    globalWebhook,
    metrics,
    log,
  })
  // Its name may take time to resolve; nothing waits for that.
  if (globalWebhook !== undefined) void warnOfRefused(globalWebhook, check, log)
  await dispatcher.start()
  const open = stack.move()
  return {
    registrations,
    dispatcher,
    committed: (before, after) => dispatcher.committed(before, after),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** What lives as long as its task: in this process where it is the only one, else where all of them find it. */
async function shortLived(
  { store, redisUrl: url, agentId, globalWebhook, log }: Parameters<typeof startWebhooks>[0],
  stack: AsyncDisposableStack,
): Promise<Pick<RegistrationsOptions, 'memory' | 'ofGlobal' | 'hints'>> {
  if (url === undefined || store.exclusive) return { memory: new MemoryWebhooks() }
  const { openRedisWebhooks } = await import('../store/redis/webhooks.ts')
  const memory = stack.use(await openRedisWebhooks({ url, agentId, log }))
  if (globalWebhook === undefined) {
    const { openRedisAnnouncements } = await import('./redis-announcements.ts')
    return { memory, hints: stack.use(await openRedisAnnouncements({ url, agentId, log })) }
  }
  const progress = stack.use(await openRedisWebhooks({ url, agentId, log, name: 'global-webhook' }))
  return { memory, ofGlobal: globalProgress(progress, globalWebhook) }
}
