import { overviewAnswer } from '@parley/wire/codecs/answers/operator/console'
import { queueAnswer, waitingAnswer } from '@parley/wire/codecs/answers/operator/tasks'
import { beforeAll, expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { agent, bearer, gateway, gatewayForAllTests } from '../../testing.ts'
import { agentWith, row } from '../tasks/testing.ts'
import { attentionOf } from './attention.ts'

gatewayForAllTests()

async function read(path: string, client = 'root', scope = 'agent:read agent:admin') {
  const headers = { authorization: bearer(client, scope) }
  const response = await fetch(`${gateway().addresses.public}/operator/${path}`, { headers })
  return { status: response.status, json: await response.json() }
}

function stored(slug: string): AgentEntry {
  const entry = gateway().registry.find(slug)
  if (entry === undefined) throw new Error(`no agent ${slug}`)
  return entry
}

beforeAll(async () => {
  await agentWith('sky', [
    row('s3', 3, { state: 'submitted' }),
    row('s2', 2, { state: 'input-required', reason: 'Which \u202ecity?', owner: 'bob' }),
    row('s1', 1),
  ])
  await agentWith('sea', [
    row('m1', 1, {
      state: 'input-required',
      reason: 'How deep?',
      expires_at: '2026-11-23T13:00:00+01:00',
      payment: {
        amount: '0.05\u202e',
        asset: '0x1',
        asset_name: 'USDC\nfree',
        network: 'eip155:84532',
        sandbox: true,
      },
    }),
  ])
  await agent('newcomer', 'Waits for admission', { admitted: false, origin: 'registered', verified: false })
})

test('the overview has the load of all agents, the unfinished tasks and what needs attention', async () => {
  const overview = overviewAnswer.parse((await read('overview')).json)
  expect(overview.agents.map(({ agent: slug }) => slug)).toEqual(['sea', 'sky', 'newcomer'])
  expect(overview).toMatchObject({ agents_total: 3, tasks: { submitted: 1, working: 1, waiting: 2 } })
  expect(overview.attention).toMatchObject([
    { kind: 'agent_not_admitted', agent: 'newcomer', command: 'npx parley waiting' },
    { kind: 'queue_long', agent: 'sky', command: 'npx parley tasks --agent sky --state submitted' },
    { kind: 'task_waiting', count: 2, path: '/console/waiting' },
  ])
})

test('a changed card needs attention, for a supervised agent only if its skills have changed', async () => {
  const changed = (origin: 'registered' | 'supervised', field: string) => ({
    ...stored('newcomer'),
    origin,
    admitted: true,
    cardChanges: [
      { at: '2026-11-20T00:00:00.000000+00:00', field },
      { at: '2026-11-21T00:00:00.000000+00:00', field: 'supportedInterfaces' },
    ],
  })
  const needed = { kind: 'card_changed', command: 'npx parley history newcomer --changes' }
  const [registered] = attentionOf([changed('registered', 'description')])
  expect(registered).toMatchObject({ ...needed, since: '2026-11-21T00:00:00.000000+00:00' })
  const [supervised] = attentionOf([changed('supervised', 'skills.search')])
  expect(supervised).toMatchObject({ ...needed, since: '2026-11-20T00:00:00.000000+00:00' })
  expect(attentionOf([changed('supervised', 'description')])).toEqual([])
})

test('the queues are listed, those with the most tasks first', async () => {
  const { agents, unread } = queueAnswer.parse((await read('queue')).json)
  expect(agents.map(({ agent: slug, queued, waiting }) => [slug, queued, waiting])).toEqual([
    ['sky', 1, 1],
    ['sea', 0, 1],
  ])
  expect(unread).toEqual([])
  expect((await read('queue?agent=sea')).json).toMatchObject({ agents: [{ agent: 'sea' }] })
})

test('an operator sees every task and agent that waits, with payment and expiry, a caller only its own tasks', async () => {
  const all = waitingAnswer.parse((await read('waiting')).json)
  expect(all.tasks.map(({ agent: slug, question }) => [slug, question])).toEqual([
    ['sky', 'Which city?'],
    ['sea', 'How deep?'],
  ])
  expect(all.admissions).toMatchObject([{ agent: 'newcomer', reason: expect.stringContaining('admits') }])
  expect(all.tasks.map(({ payment, expires_at }) => [payment, expires_at])).toEqual([
    [null, null],
    [
      { amount: '0.05', asset: '0x1', asset_name: 'USDC free', network: 'eip155:84532', sandbox: true },
      '2026-11-23T12:00:00.000000+00:00',
    ],
  ])
  const own = waitingAnswer.parse((await read('waiting', 'alice', 'agent:read')).json)
  expect([own.tasks.map(({ task_id: id }) => id), own.admissions]).toEqual([['m1'], []])
})

test('the overview and the queues are refused to callers', async () => {
  expect((await read('overview', 'alice', 'agent:read')).status).toBe(403)
  expect((await read('queue', 'alice', 'agent:read')).status).toBe(403)
})
