import { randomUUID } from 'node:crypto'
import type { WireTask } from '../../shared/client/wire.ts'
import { isTerminal } from '../../shared/protocol/task.ts'
import { eventsOf, isSound } from '../../shared/testing/agent-processes.ts'
import type { WebhookReceiver } from '../../shared/testing/webhook-receiver.ts'
import { type Asking, persistently } from './asking.ts'
import type { Told } from './load.ts'
import { pick } from './plan.ts'
import { atOnce, settled } from './settled.ts'

/** Tasks that are found wrong, by their ids. */
export interface TaskFindings {
  /** Not there any more. */
  lost: string[]
  /** Texts with more than one task. */
  double: string[]
  /** Not at their end although nothing goes wrong any more. */
  stuck: string[]
  /** An event number missing, told twice, or behind the end. */
  badEvents: string[]
  /** The `long_running` webhook lacks an event, or had them out of order. */
  badWebhooks: string[]
}

interface Seen {
  receiver: WebhookReceiver
  findings: TaskFindings
  /** In which nothing moves at all. Default 60 s. */
  patienceMs?: number
}

const askedAtOnce = 4

/** What one client was told, against what is there; paused tasks are answered. Resolves with all its tasks. */
export async function judgeTasks(asking: Asking, told: Told[], seen: Seen): Promise<WireTask[]> {
  const { findings, patienceMs = 60_000 } = seen
  let tasks: WireTask[] = []
  const ended = async () => {
    tasks = await allTasks(asking)
    const paused = tasks.filter(({ status }) => status.state === 'input-required')
    await atOnce(paused, askedAtOnce, (task) => answer(asking, task))
    return tasks.every(({ status }) => isTerminal(status.state))
  }
  const open = () => tasks.filter(({ status }) => !isTerminal(status.state)).length
  await settled(ended, open, patienceMs)
  const byId = new Map(tasks.map((task) => [task.id, task]))
  for (const task of tasks) if (!isTerminal(task.status.state)) findings.stuck.push(task.id)
  findings.double.push(...twice(tasks.map(textOf)))
  findings.lost.push(...told.filter(({ taskId }) => !byId.has(taskId)).map(({ taskId }) => taskId))
  const there = told.filter(({ taskId }) => byId.has(taskId) && !findings.stuck.includes(taskId))
  await atOnce(there, askedAtOnce, (one) => judgeEvents(asking, one, { ...seen, patienceMs }))
  return tasks
}

async function judgeEvents(
  asking: Asking,
  { taskId, webhook }: Told,
  { receiver, findings, patienceMs }: Required<Seen>,
): Promise<void> {
  const events = (await persistently(asking, (way) => eventsOf(way, taskId))) ?? []
  if (!isSound(events)) findings.badEvents.push(taskId)
  if (!webhook) return
  const wanted = events.map(({ event_id: id }) => id).join()
  const sent = () => receiver.events.filter((event) => event.task_id === taskId)
  await settled(
    () => sent().length >= events.length,
    () => receiver.posts.length,
    patienceMs,
  )
  if (
    sent()
      .map(({ event_id: id }) => id)
      .join() !== wanted
  )
    findings.badWebhooks.push(taskId)
}

/** Of the agent's own list: the gateway's gathers from those that it knows of. */
async function allTasks(asking: Asking): Promise<WireTask[]> {
  const tasks: WireTask[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const params = { limit: 500, ...(cursor !== undefined && { cursor }) }
    const { named } = pick(asking.client.at, asking.random())
    const page = await persistently(
      asking,
      (way) => way.request('tasks/list', params),
      () => named,
    )
    if (page === undefined) throw new Error('tasks/list was refused')
    tasks.push(...(page.result as WireTask[]))
    cursor = page.headers.get('x-next-cursor')
  }
  return tasks
}

async function answer(asking: Asking, { id: taskId }: WireTask): Promise<void> {
  const parts = [{ kind: 'text', text: 'go' }]
  const message = { role: 'user', kind: 'message', messageId: randomUUID(), taskId, parts }
  await persistently(asking, (way) => way.request('message/send', { message }))
}

function textOf({ history }: WireTask): string {
  const part = history?.[0]?.parts[0]
  return part !== undefined && 'text' in part ? part.text : ''
}

function twice(all: string[]): string[] {
  const seen = new Set<string>()
  return all.filter((one) => seen.has(one) || !seen.add(one))
}
