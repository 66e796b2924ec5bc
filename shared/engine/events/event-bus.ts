import type { ArtifactDelta, TaskEvent } from '@parley/wire/model/event'

/** The task changed, but the bus has no details because the message was too large or lost: read the store. */
export interface ChangeNotice {
  kind: 'changed'
}

export type LiveItem = TaskEvent | ArtifactDelta
export type BusMessage = LiveItem | ChangeNotice

export interface Subscription extends Disposable {
  /** Resolves when all messages that are published from now on will be received. Never rejects. */
  readonly ready: Promise<void>
}

/**
 * Notifies subscribers of a task of committed events and of output in progress. Notifications are hints: what
 * is lost can be read from the store. Within one process, the events of a task arrive in order.
 */
export interface EventBus extends AsyncDisposable {
  ping(): Promise<void>
  publish(taskId: string, items: readonly LiveItem[]): void
  /** The listener must not throw or block. */
  subscribe(taskId: string, listener: (item: BusMessage) => void): Subscription
}
