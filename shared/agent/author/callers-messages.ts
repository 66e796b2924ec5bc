import type { Message } from '@parley/wire/model/task'

type Said = Pick<Message, 'role'>

/**
 * Which messages of a task are the caller's. The caller may speak in any role, also in ours; but a task begins with the
 * caller, and takes the next message only after we have said something.
 */
export function areCallers(history: readonly Said[]): boolean[] {
  const callers: boolean[] = []
  for (const [at, { role }] of history.entries())
    callers.push(role !== 'assistant' || callers[at - 1] !== true)
  return callers
}

/** The caller's messages of a task, oldest first. */
export function callersMessages<T extends Said>(history: readonly T[]): T[] {
  const callers = areCallers(history)
  return history.filter((_message, at) => callers[at])
}
