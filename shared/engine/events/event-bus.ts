import type { ArtifactDelta, TaskEvent } from '@parley/wire/model/event'

/** Something happened that the bus cannot tell (it was too large, or was lost): the store knows. */
export interface ChangeNotice {
  kind: 'changed'
}

export type LiveItem = TaskEvent | ArtifactDelta
export type BusMessage = LiveItem | ChangeNotice

export interface Subscription extends Disposable {
  /** Resolves when all that is published from now on will be heard. Never rejects. */
  readonly ready: Promise<void>
}

/**
 * Tells followers of a task what was committed, and what is in the making. A hint, not the truth: what it loses is in the
 * store. Within one process a task's events arrive in the order of their numbers.
 */
export interface EventBus extends AsyncDisposable {
  ping(): Promise<void>
  publish(taskId: string, items: readonly LiveItem[]): void
  /** The listener must not throw and not block. */
  subscribe(taskId: string, listener: (item: BusMessage) => void): Subscription
}
