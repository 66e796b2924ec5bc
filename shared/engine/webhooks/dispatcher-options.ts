import type { Log } from '@parley/kit/process/log'
import type { WebhookMetrics } from '@parley/kit/process/webhook-metrics'
import type { TaskRecord } from '../store/store.ts'
import type { Deliverer } from './deliverer.ts'
import type { GlobalWebhook } from './event-buffer.ts'
import type { FairQueueLimits } from './fair-queue.ts'
import type { Registrations } from './registrations.ts'

export interface DispatcherOptions {
  registrations: Registrations
  loadTask: (id: string) => Promise<TaskRecord | undefined>
  deliverer: Pick<Deliverer, 'deliver'>
  globalWebhook?: GlobalWebhook | undefined
  metrics: WebhookMetrics
  log: Log
  limits?: FairQueueLimits
  /**
   * Maximum number of queues in memory for stored configs ({@link QueueCapacity}), and the same number for
   * the global webhook. Further stored configs are loaded later. Default 50,000.
   */
  queuesMax?: number
  /**
   * The number of loaded bytes beyond which no further large event is loaded. Each owner may hold at most as
   * many bytes as are free. Default 64 MiB.
   */
  bytesMax?: number
  /** The delay before a failed store operation is retried. Default 1 s. */
  retryMs?: number
  /**
   * How often unclaimed configs are scanned, and how long a lease lasts, with several processes. Default 2 s
   * and 6 s.
   */
  pollIntervalMs?: number
  leaseMs?: number
}
