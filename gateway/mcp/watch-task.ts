import { clipped } from '@parley/wire/model/clean-text'
import { isResting, type Task } from '@parley/wire/model/task'
import type { AgentMessage, CallerCalls, SentTask } from '../calls/agent-calls.ts'
import { agentIsSlow } from '../calls/inner-requests.ts'
import { textOf } from './task-results.ts'

export interface WatchOptions {
  /** The longest time to wait for the task, in milliseconds. */
  waitMs: number
  signal: AbortSignal
  /** Reports progress. The numbers grow. */
  notify: (progress: number, text: string) => Promise<void>
}

/** A client that resets its timeout with each notification does not give up in this time. */
const quietMs = 10_000

/** Sends a message, reports the progress of its task, and returns the task when it has ended or paused or time is up. */
export async function watchTask(
  calls: CallerCalls,
  message: AgentMessage,
  { waitMs, signal, notify }: WatchOptions,
): Promise<SentTask> {
  let sent: SentTask | undefined
  let steps = 0
  const report = (text: string) => notify(++steps, text).catch(() => {})
  const quiet = setInterval(() => void report('The agent is still working'), quietMs)
  const ends = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
  try {
    for await (const change of calls.stream(message, { signal: ends })) {
      if (change.kind === 'task') {
        sent = { ...sent, task: change.task, agent: change.agent ?? sent?.agent ?? message.agent ?? '' }
        if (change.decisionId !== undefined) sent.decisionId = change.decisionId
      }
      if (change.kind === 'task' && steps === 0) await report('The agent has received the request')
      const text = change.kind === 'status' ? textOf(change.status.message?.parts ?? []) : ''
      if (change.kind === 'status' && !isResting(change.status.state)) {
        quiet.refresh()
        await report(clipped(text || `The task is ${change.status.state}`, 1000))
      }
    }
  } catch (error) {
    if (!ends.aborted) throw error
    if (sent === undefined) throw signal.aborted ? error : agentIsSlow()
  } finally {
    clearInterval(quiet)
  }
  if (sent === undefined) throw new Error('The stream of a message has no task')
  return { ...sent, task: await currentTask(calls, sent) }
}

async function currentTask(calls: CallerCalls, { task, agent }: SentTask): Promise<Task> {
  return calls.getTask({ taskId: task.id, ...(agent !== '' && { agent }) })
}
