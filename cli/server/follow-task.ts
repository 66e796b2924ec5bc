import type { AgentClient, WireEvent, WireStatus } from '@parley/client/internal/client'
import { positionOf } from '@parley/wire/codecs/parley/events'
import { isPaused, isTerminal } from '@parley/wire/model/task'
import { CommandFailed } from '../terminal/faults.ts'
import { Interrupted } from '../terminal/interrupt.ts'
import { type Io, printJson, say } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'
import { promptOf } from '../terminal/question.ts'
import { textOf } from '../terminal/task-view.ts'

/** The latest known state of a followed task. */
export interface Standing {
  taskId: string
  contextId: string
  status: WireStatus
}

/** Prints the events until the task ends or pauses. Calls `noted` with the task as soon as it is known. */
export async function followEvents(
  events: AsyncIterable<WireEvent>,
  show: (event: WireEvent) => void | Promise<void>,
  noted: (standing: Standing) => void = () => {},
): Promise<Standing> {
  let standing: Standing | undefined
  for await (const event of events) {
    if (event.kind === 'status-update') {
      const { taskId, contextId } = positionOf(event)
      standing = { taskId, contextId, status: event.status }
      noted(standing)
    }
    await show(event)
  }
  if (standing === undefined) throw new CommandFailed('The stream ended without a final or paused state.')
  return standing
}

/** Prints the task's outcome. Returns exit code 0 if the task completed and 1 otherwise. */
export function conclude(io: Io, standing: Standing, agent: string): number {
  const { state, message } = standing.status
  const reason = oneLine(textOf(message?.parts ?? [], ' '), 1000)
  if (state === 'completed') return 0
  if (isTerminal(state)) {
    say(io, reason === '' ? `The task was ${state}.`.replace('was failed', 'failed') : `${state}: ${reason}`)
    return 1
  }
  if (isPaused(state)) {
    say(io, promptOf(standing.status))
    say(io, `The task ${standing.taskId} waits (${state}). Answer with:`)
    say(io, `  npx parley send ${agent} --task ${standing.taskId} "…"`)
  }
  return 1
}

/** Like `conclude`, but prints the whole task as JSON on stdout. */
export async function concludeJson(io: Io, standing: Standing, client: AgentClient): Promise<number> {
  printJson(io, await client.get(standing.taskId))
  return standing.status.state === 'completed' ? 0 : 1
}

/** After an interruption, prints how to resume following the task, which continues to run. Rethrows other errors. */
export function sayInterrupted(io: Io, thrown: unknown, taskId: string | undefined, agent: string): void {
  if (!(thrown instanceof Interrupted)) throw thrown
  if (taskId !== undefined) {
    say(io, `\nThe task continues. Follow it with: npx parley watch ${taskId} --agent ${agent}`)
  }
}
