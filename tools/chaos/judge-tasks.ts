import { randomUUID } from 'node:crypto'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { isTerminal } from '@parley/wire/model/task'
import { eventsOf, isSound } from '../testing/agent-processes.ts'
import type { ReceivedPost, WebhookReceiver } from '../testing/webhook-receiver.ts'
import type { Acknowledged } from './load.ts'
import { pick } from './plan.ts'
import { type ClientRun, untilDone } from './retry.ts'
import { atOnce, settled } from './settled.ts'

/** Ids of tasks with findings. */
export interface TaskFindings {
  /** Tasks that no longer exist. */
  lost: string[]
  /** Texts that created more than one task. */
  double: string[]
  /** Tasks that do not end after the faults have ended. */
  stuck: string[]
  /** Tasks with a missing or repeated event number, or an event after the final one. */
  badEvents: string[]
  /** Tasks whose `long_running` webhook missed events or received them out of order. */
  badWebhooks: string[]
}

interface JudgeOptions {
  receiver: WebhookReceiver
  findings: TaskFindings
  /** Time without progress that counts as a standstill, 60 s by default. */
  patienceMs?: number
}

const askedAtOnce = 4

/**
 * Compares the records of one client with the stored tasks, and answers paused tasks. Resolves with all tasks of the
 * client.
 */
export async function judgeTasks(
  run: ClientRun,
  acknowledged: Acknowledged[],
  options: JudgeOptions,
): Promise<WireTask[]> {
  const { findings, patienceMs = 60_000 } = options
  const tasks = await allTasks(run)
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const open = () => [...byId.values()].filter(({ status }) => !isTerminal(status.state))
  const ended = async () => {
    await atOnce(open(), askedAtOnce, async (task) => {
      if (task.status.state === 'input-required') await answer(run, task)
      const now = await untilDone(run, (way) => way.get(task.id))
      if (now !== undefined) byId.set(now.id, now)
    })
    return open().length === 0
  }
  await settled(ended, () => open().length, patienceMs)
  findings.stuck.push(...open().map(({ id }) => id))
  findings.double.push(...twice(tasks.map(textOf)))
  findings.lost.push(...acknowledged.filter(({ taskId }) => !byId.has(taskId)).map(({ taskId }) => taskId))
  const sent = new SentEvents(options.receiver)
  const there = acknowledged.filter(({ taskId }) => byId.has(taskId) && !findings.stuck.includes(taskId))
  await atOnce(there, askedAtOnce, (one) => judgeEvents(run, one, { ...options, sent, patienceMs }))
  return [...byId.values()]
}

async function judgeEvents(
  run: ClientRun,
  { taskId, webhook }: Acknowledged,
  { receiver, sent, findings, patienceMs }: Required<JudgeOptions> & { sent: SentEvents },
): Promise<void> {
  const events = (await untilDone(run, (way) => eventsOf(way, taskId))) ?? []
  if (!isSound(events)) findings.badEvents.push(taskId)
  if (!webhook) return
  const wanted = events.map(({ event_id: id }) => id).join()
  await settled(
    () => sent.of(taskId).length >= events.length,
    () => receiver.posts.length,
    patienceMs,
  )
  if (sent.of(taskId).join() !== wanted) findings.badWebhooks.push(taskId)
}

/** Lists the tasks at the agent, because the gateway's list covers only the agents that it knows. */
async function allTasks(run: ClientRun): Promise<WireTask[]> {
  const tasks: WireTask[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const params = { limit: 500, ...(cursor !== undefined && { cursor }) }
    const { named } = pick(run.client.at, run.random())
    const page = await untilDone(
      run,
      (way) => way.request('tasks/list', params),
      () => named,
    )
    if (page === undefined) throw new Error('tasks/list was refused')
    tasks.push(...(page.result as WireTask[]))
    cursor = page.headers.get('x-next-cursor')
  }
  return tasks
}

async function answer(run: ClientRun, { id: taskId }: WireTask): Promise<void> {
  const parts = [{ kind: 'text', text: 'go' }]
  const message = { role: 'user', kind: 'message', messageId: randomUUID(), taskId, parts }
  await untilDone(run, (way) => way.request('message/send', { message }))
}

/** The ids of the events that the receiver got, by task, in order of their first delivery. */
class SentEvents {
  readonly #receiver: WebhookReceiver
  readonly #ofTask = new Map<string, string[]>()
  #read = 0

  constructor(receiver: WebhookReceiver) {
    this.#receiver = receiver
  }

  of(taskId: string): string[] {
    const { posts } = this.#receiver
    for (; this.#read < posts.length; this.#read += 1) {
      const { event, attempt } = posts[this.#read] as ReceivedPost
      const sent = this.#ofTask.get(event.task_id) ?? []
      if (attempt === 1) this.#ofTask.set(event.task_id, [...sent, event.event_id])
    }
    return this.#ofTask.get(taskId) ?? []
  }
}

function textOf({ history }: WireTask): string {
  const part = history?.[0]?.parts[0]
  return part !== undefined && 'text' in part ? part.text : ''
}

function twice(all: string[]): string[] {
  const options = new Set<string>()
  return all.filter((one) => options.has(one) || !options.add(one))
}
