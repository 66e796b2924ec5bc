import type { AllowedHosts } from '../net/allowed-hosts.ts'
import type { Log } from '../process/log.ts'
import type { WebhookMetrics } from '../process/webhook-metrics.ts'
import { MemoryWebhooks } from '../store/memory-webhooks.ts'
import type { Store } from '../store/store.ts'
import { checkReceiver } from './check-receiver.ts'
import { Deliverer } from './deliver.ts'
import { WebhookDispatcher } from './dispatcher.ts'
import { warnOfRefused } from './global-webhook.ts'
import type { GlobalWebhook } from './next-events.ts'
import { Registrations } from './registrations.ts'

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
}): Promise<Webhooks> {
  const { store, allowed, globalWebhook, metrics, log } = parts
  const check = (receiver: GlobalWebhook) => checkReceiver(receiver, { allowed })
  const registrations = new Registrations({
    stored: store.webhooks,
    memory: new MemoryWebhooks(),
    check,
    shared: !store.exclusive,
  })
  const deliverer = new Deliverer({ allowed })
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
  return {
    registrations,
    dispatcher,
    committed: (before, after) => dispatcher.committed(before, after),
    [Symbol.asyncDispose]: () => deliverer[Symbol.asyncDispose](),
  }
}
