import type { Message } from '@parley/wire/model/task'

type WithRole = Pick<Message, 'role'>

/**
 * Whether each message of a task was sent by the caller. The role alone is not enough: a caller may use any role, even
 * `assistant`. A task begins with a message from the caller and accepts another only after a message from the agent
 * (spec/tasks.md#history).
 * @param history the messages of one task, oldest first
 * @returns one boolean per message
 */
export function areCallers(history: readonly WithRole[]): boolean[] {
  const callers: boolean[] = []
  for (const [at, { role }] of history.entries())
    callers.push(role !== 'assistant' || callers[at - 1] !== true)
  return callers
}

/**
 * Returns the messages of a task that the caller sent, oldest first.
 * @param history the messages of one task, oldest first
 */
export function callersMessages<T extends WithRole>(history: readonly T[]): T[] {
  const callers = areCallers(history)
  return history.filter((_message, at) => callers[at])
}
