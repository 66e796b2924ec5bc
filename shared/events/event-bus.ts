import type { ArtifactDelta, TaskEvent } from '../protocol/event.ts'

export type Published = TaskEvent | ArtifactDelta

/**
 * Tells followers of a task what was committed, and what is in the making. A hint, not the truth: what it loses is in the
 * store. Within one process a task's events arrive in the order of their numbers.
 */
export interface EventBus extends AsyncDisposable {
  ping(): Promise<void>
  publish(taskId: string, items: readonly Published[]): void
  /** The listener must not throw and not block. */
  subscribe(taskId: string, listener: (item: Published) => void): Disposable
}
