import type { ArtifactDelta, TaskEvent } from '@parley/wire/model/event'

/** Reports that the task changed without details, because the message was too large or lost. Read the store. */
export interface ChangeNotice {
  kind: 'changed'
}

export type LiveItem = TaskEvent | ArtifactDelta
export type BusMessage = LiveItem | ChangeNotice

export interface Subscription extends Disposable {
  /** Resolves once every message published from then on will be received. Never rejects. */
  readonly ready: Promise<void>
}

/**
 * Notifies a task's subscribers of committed events and of output in progress. Notifications are hints: a
 * subscriber can read a lost event from the store. Within one process, a task's events arrive in order.
 */
export interface EventBus extends AsyncDisposable {
  ping(): Promise<void>
  publish(taskId: string, items: readonly LiveItem[]): void
  /** The listener must not throw or block. */
  subscribe(taskId: string, listener: (item: BusMessage) => void): Subscription
}
