import type { agentQueue, agentTaskList } from '@parley/wire/codecs/answers/operator/tasks'
import type { z } from 'zod'
import { agent, type FakeAgent, fail } from '../../testing.ts'
import type { AgentTaskRow } from './clean-row.ts'
import type { AgentTaskDetail } from './find-task.ts'

/** The time of the row of this number. */
export const timeOf = (second: number) => new Date(Date.UTC(2026, 10, 22, 12, 0, second)).toISOString()

/** A row as an agent lists it. */
export function row(id: string, second: number, more: Partial<AgentTaskRow> = {}): AgentTaskRow {
  const at = timeOf(second)
  return {
    task_id: id,
    context_id: `context of ${id}`,
    owner: 'alice',
    state: 'working',
    created_at: at,
    updated_at: at,
    since: at,
    started_at: at,
    starts: 1,
    worked_ms: 0,
    deadline_at: null,
    skill: null,
    text: `text of ${id}`,
    reason: null,
    parent: null,
    trace_id: null,
    ...more,
  }
}

export function detail(id: string, second: number, more: Partial<AgentTaskDetail> = {}): AgentTaskDetail {
  return {
    ...row(id, second),
    events: [{ sequence: 1, at: timeOf(second), kind: 'status-update', state: 'working', text: 'Reading' }],
    runs: [{ started_at: timeOf(second), ended_at: null, outcome: null }],
    message_count: 1,
    children: [],
    references: [],
    webhooks: [],
    payments: [],
    usage: null,
    feedback: null,
    task: { id },
    ...more,
  }
}

/** An agent with these tasks, newest first, which applies `until` and `limit` as agents do. */
export async function agentWith(
  name: string,
  tasks: (AgentTaskRow | AgentTaskDetail)[],
  more: object = {},
): Promise<FakeAgent> {
  const one = await agent(name, `The agent ${name}`, more)
  one.get = (path, _request, response) => {
    response.setHeader('x-parley-time', new Date(Date.now() + 60_000).toISOString())
    const url = new URL(path, 'http://agent')
    const [, , group, id = ''] = url.pathname.split('/')
    if (group === 'queue') return queueOf(tasks)
    if (id === '') return pageOf(tasks, url.searchParams)
    const found = tasks.find((task) => task.task_id === decodeURIComponent(id))
    if (found !== undefined) return found
    fail(response, null, 404, -32001, {})
    return 'later'
  }
  return one
}

function queueOf(tasks: AgentTaskRow[]): z.input<typeof agentQueue> {
  const count = (wanted: string) => tasks.filter(({ state }) => state === wanted).length
  return {
    queued: count('submitted'),
    running: count('working'),
    waiting: count('input-required'),
    oldest_queued_at: tasks.find(({ state }) => state === 'submitted')?.since ?? null,
    owners: [],
    ended: {},
  }
}

function pageOf(tasks: AgentTaskRow[], search: URLSearchParams): z.input<typeof agentTaskList> {
  const until = search.get('until')
  const since = search.get('since')
  const states = search.get('state')?.split(',')
  const found = tasks
    .filter(({ state }) => search.get('waiting') !== 'true' || state === 'input-required')
    .filter((task) => until === null || Date.parse(task.since) < Date.parse(until))
    .filter((task) => since === null || task.since >= since)
    .filter(({ state }) => states === undefined || states.includes(state))
  const page = found.slice(0, Number(search.get('limit')))
  return { tasks: page, next_cursor: page.length < found.length ? 'more' : null }
}
