import type { TaskRecord } from '@parley/engine/store/store'

/** The end of the time that a run may take. */
export interface Deadline {
  /** Milliseconds since 1970. */
  at: number
  /** Why the task fails when the deadline passes. */
  reason: string
}

/**
 * Returns the earlier of two limits: the agent's on working time and the caller's on the whole task
 * (spec/tasks.md#pauses-and-deadlines). Undefined if there is neither.
 * @param agent `deadlineMs` 0 sets no limit
 */
export function deadlineOf(
  { deadlineMs }: { deadlineMs: number },
  { workedMs, deadlineAt }: Pick<TaskRecord, 'workedMs' | 'deadlineAt'>,
): Deadline | undefined {
  const own = deadlineMs === 0 ? undefined : Date.now() + deadlineMs - workedMs
  if (deadlineAt !== undefined && deadlineAt <= (own ?? Number.POSITIVE_INFINITY))
    return { at: deadlineAt, reason: 'The task exceeded the deadline that its caller set.' }
  return own === undefined
    ? undefined
    : { at: own, reason: `The task exceeded its deadline of ${deadlineMs} ms.` }
}

/** Calls `passed` at the deadline, unless disposed before. */
export function atDeadline(deadline: Deadline | undefined, passed: () => void): Disposable {
  if (deadline === undefined) return { [Symbol.dispose]: () => {} }
  const timer = setTimeout(passed, Math.max(deadline.at - Date.now(), 1))
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}
