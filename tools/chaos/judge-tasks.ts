import { randomUUID } from 'node:crypto'
import type { WireEvent, WireTask } from '@parley/wire/codecs/parley/shapes'
import { isTerminal } from '@parley/wire/model/task'
import { eventsOf, isSound } from '../testing/agent-processes.ts'
import type { ReceivedPost, WebhookReceiver } from '../testing/webhook-receiver.ts'
import { a2aDelivery, a2aListFaults } from './a2a-load.ts'
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
  /** Tasks with a `long_running` webhook that missed events or received them out of order. */
  badWebhooks: string[]
  /** Tasks that `ListTasks` of A2A omits or repeats when its pages come from different gateways. */
  badLists: string[]
}

export const noFindings = (): TaskFindings => ({
  lost: [],
  double: [],
  stuck: [],
  badEvents: [],
  badWebhooks: [],
  badLists: [],
})

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
  if (run.client.role === 'a2a') findings.badLists.push(...(await a2aListFaults(run, [...byId.keys()])))
  const sent = new SentEvents(options.receiver)
  const there = acknowledged.filter(({ taskId }) => byId.has(taskId) && !findings.stuck.includes(taskId))
  await atOnce(there, askedAtOnce, (one) => judgeEvents(run, one, { ...options, sent, patienceMs }))
  return [...byId.values()]
}

async function judgeEvents(
  run: ClientRun,
  { taskId, webhook, a2a }: Acknowledged,
  { receiver, sent, findings, patienceMs }: Required<JudgeOptions> & { sent: SentEvents },
): Promise<void> {
  const events = (await untilDone(run, (way) => eventsOf(way, taskId))) ?? []
  if (!isSound(events)) findings.badEvents.push(taskId)
  if (!webhook) return
  const wanted = events.map((event) => (a2a === undefined ? event.event_id : changeIn(event)))
  const isComplete = () => {
    const received = sent.of(taskId)
    // Each delivery of A2A 0.3 has the state at that time, and repeats may be equal.
    return a2a === '0.3' ? received.at(-1) === wanted.at(-1) : received.length >= wanted.length
  }
  await settled(isComplete, () => receiver.posts.length, patienceMs)
  const isRight = a2a === '0.3' ? isComplete() : sent.of(taskId).join() === wanted.join()
  if (!isRight) findings.badWebhooks.push(taskId)
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

/** The ids of the events that the receiver got, by task, in order of their first delivery. A2A: what the events change. */
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
      const { task, id } =
        event.event_id === undefined ? a2aDelivery(event) : { task: event.task_id, id: event.event_id }
      if (attempt === 1) this.#ofTask.set(task, [...(this.#ofTask.get(task) ?? []), id])
    }
    return this.#ofTask.get(taskId) ?? []
  }
}

/** What an event changes, in any dialect: the state or an artifact. */
function changeIn(event: WireEvent): string {
  return event.kind === 'status-update' ? event.status.state : `artifact ${event.artifact.artifact_id}`
}

function textOf({ history }: WireTask): string {
  const part = history?.[0]?.parts[0]
  return part !== undefined && 'text' in part ? part.text : ''
}

function twice(all: string[]): string[] {
  const options = new Set<string>()
  return all.filter((one) => options.has(one) || !options.add(one))
}
