import { AgentClient } from '@parley/client/internal/client'
import { expect, test } from 'vitest'
import { scriptedAgent } from '../testing/scripted-agent.ts'
import { WebhookReceiver } from '../testing/webhook-receiver.ts'
import { status, task, taskId } from '../testing/wire-samples.ts'
import { judgeTasks, noFindings, type TaskFindings } from './judge-tasks.ts'
import type { Acknowledged } from './load.ts'
import type { ClientRun } from './retry.ts'

const history = [{ parts: [{ kind: 'text', text: 'soon order 1' }] }]
const completed = { ...task('completed'), history }
const events = [status(1, 'working'), status(2, 'completed')]

const a2aEvents = ['WORKING', 'COMPLETED'].map((state) => ({
  statusUpdate: { taskId, contextId: 'c', status: { state: `TASK_STATE_${state}` } },
}))

interface Given {
  tasks?: object[]
  events?: object[]
  acknowledged?: Partial<Acknowledged>
  /** Indexes of the events that the webhook received, in order of arrival. */
  sent?: number[]
}

async function judged(given: Given): Promise<Partial<TaskFindings>> {
  await using receiver = await WebhookReceiver.start()
  const sent = given.acknowledged?.a2a === undefined ? events : a2aEvents
  for (const at of given.sent ?? [0, 1]) {
    await fetch(receiver.url, { method: 'POST', body: JSON.stringify(sent[at]) })
  }
  await using agent = await scriptedAgent({
    'tasks/list': () => ({ result: given.tasks ?? [completed] }),
    'tasks/get': () => ({ result: given.tasks?.[0] }),
    'tasks/events': () => ({ result: { events: given.events ?? events } }),
  })
  const way = new AgentClient({ url: agent.url })
  const client = {
    name: 'test',
    role: 'plain' as const,
    clock: { wrongBy: 0 },
    at: [{ named: way, routed: way }],
    token: () => Promise.resolve(''),
    purse: undefined,
    refusedByClock: 0,
    acceptedDespiteClock: 0,
    paidWithoutTask: 0,
  }
  const tally = { acknowledged: 0, outages: new Map(), unclear: new Map() }
  const run: ClientRun = { client, random: () => 0, tally, recovery: { since: undefined } }
  const findings = noFindings()
  const acknowledged = {
    taskId,
    text: 'soon order 1',
    webhook: true,
    paid: false,
    txHash: undefined,
    ...given.acknowledged,
  }
  await judgeTasks(run, [acknowledged], { receiver, findings, patienceMs: 300 })
  return Object.fromEntries(Object.entries(findings).filter(([, all]) => all.length > 0))
}

test('reports no findings for a task with complete events and webhooks', async () => {
  expect(await judged({})).toEqual({})
  expect(await judged({ acknowledged: { a2a: '1.0' } })).toEqual({})
})

const other = '44444444-4444-4444-8444-444444444444'
test.each<[string, Given, Partial<TaskFindings>]>([
  ['a missing task', { acknowledged: { taskId: other } }, { lost: [other] }],
  [
    'two tasks with one text',
    { tasks: [completed, { ...completed, id: other }] },
    { double: ['soon order 1'] },
  ],
  ['a task that does not end', { tasks: [{ ...task('working'), history }] }, { stuck: [taskId] }],
  [
    'a gap in the event numbers',
    { events: [status(1, 'working'), status(3, 'completed')], acknowledged: { webhook: false } },
    { badEvents: [taskId] },
  ],
  [
    'an event after the final one',
    { events: [...events, status(3, 'working')], acknowledged: { webhook: false } },
    { badEvents: [taskId] },
  ],
  ['an event missing at the webhook', { sent: [0] }, { badWebhooks: [taskId] }],
  ['webhook events out of order', { sent: [1, 0] }, { badWebhooks: [taskId] }],
  [
    'an event missing at a webhook of A2A',
    { sent: [1], acknowledged: { a2a: '1.0' } },
    { badWebhooks: [taskId] },
  ],
])('reports %s', async (_, given, found) => {
  expect(await judged(given)).toEqual(found)
})
