import type { HandlerContext } from '../../shared/handler/define-agent.ts'

type Message = HandlerContext['history'][number]

/**
 * Which messages of a task are the caller's. The caller may speak in any role, also in ours; but a task begins with the
 * caller, and takes the next message only after we have said something.
 */
function areCallers(history: readonly Message[]): boolean[] {
  const callers: boolean[] = []
  for (const [at, { role }] of history.entries())
    callers.push(role !== 'assistant' || callers[at - 1] !== true)
  return callers
}

/** The caller's messages of a task, oldest first. */
export function callersMessages(history: readonly Message[]): Message[] {
  const callers = areCallers(history)
  return history.filter((_, at) => callers[at])
}
