import { setTimeout as wait } from 'node:timers/promises'
import type { CommitListener } from '@parley/engine/tasks/engine'
import type { Log } from '@parley/kit/process/log'
import { isTerminal } from '@parley/wire/model/task'
import { AgentRefused } from '../client/agent-errors.ts'
import type { LinkStore } from '../store/links.ts'
import { lateAnswerMs } from './relayed-run.ts'

const [attemptsMax, timeoutMs] = [3, 10_000]
/** How long a run that has just begun may take to store that it sends, and how often the link is read. */
const [startMs, checkMs] = [2000, 250]

/** Returns a listener that cancels the task at the agent when ours ends first: by a cancellation, a deadline or an expiry. */
export function cancelAtAgent(parts: {
  entryId: string
  client: { cancel(taskId: string, signal: AbortSignal): Promise<unknown> }
  links: LinkStore
  log: Log
}): CommitListener {
  const { entryId, client, links, log } = parts
  /** Waits until the agent has named its task. */
  const knownLink = async (taskId: string) => {
    const until = performance.now() + lateAnswerMs
    const startUntil = performance.now() + startMs
    for (;;) {
      const link = await links.task(entryId, taskId)
      if (link?.taskId !== undefined) return { ...link, taskId: link.taskId }
      const isOver = performance.now() > (link === undefined ? startUntil : until)
      if (link?.isEnded === true || isOver) return undefined
      await wait(checkMs, undefined, { ref: false })
    }
  }
  const cancel = async (taskId: string) => {
    const link = await knownLink(taskId)
    if (link === undefined || link.isEnded) return
    for (let attempt = 1; ; attempt += 1) {
      try {
        await client.cancel(link.taskId, AbortSignal.timeout(timeoutMs))
        break
      } catch (error) {
        if (error instanceof AgentRefused || attempt === attemptsMax) throw error
        await wait(1000 * attempt, undefined, { ref: false })
      }
    }
    await links.saveTask(entryId, taskId, { ...link, isEnded: true })
  }
  return (before, after) => {
    if (isTerminal(before.status.state) || !isTerminal(after.status.state)) return
    if (after.status.state === 'completed') return
    cancel(after.id).catch((error: unknown) =>
      log.debug({ err: error, task_id: after.id }, 'the task could not be canceled at the agent'),
    )
  }
}
