import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { Agent } from 'undici'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import { agent, gateway, gatewayForEachTest, saying } from '../../testing.ts'
import { AgentTokens } from '../forwarding/agent-tokens.ts'
import type { Claim, Route } from '../store/routing-store.ts'
import { SqliteRoutingStore } from '../store/sqlite/routing.ts'
import { TaskLocator, type TaskLocatorOptions } from './task-locator.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

let stack: AsyncDisposableStack
let store: SqliteRoutingStore
beforeEach(async () => {
  stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-whereabouts-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  store = new SqliteRoutingStore(
    stack.use(await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)),
  )
})
afterEach(() => stack.disposeAsync())

const hour = 60 * 60 * 1000
const external = { origin: 'registered', admittedBy: 'operator' }

function taskLocator(more: Partial<TaskLocatorOptions> = {}): TaskLocator {
  const upstream = stack.adopt(new Agent(), (one) => one.destroy())
  const exchange = {
    endsWithSubject: true,
    forAgent: async () => 'exchanged',
    forLedger: async () => 'exchanged',
  }
  const tokens = new AgentTokens(exchange, [gateway().addresses.public])
  return new TaskLocator({ store, tokens, dispatcherFor: () => upstream, ...more })
}

const caller = () => ({
  owner: 'alice',
  agents: gateway().registry,
  headers: {},
  token: {
    caller: { id: 'alice', subject: 'alice', scopes: new Set(['agent:read']) },
    subject: { text: 'token', hash: 'hash', introspection: { active: true } },
  },
  requestId: 'one',
})

const idOf = (slug: string) => gateway().registry.find(slug)?.id ?? ''

/** A route that rests on the claim of an external agent. */
async function claimed(slug: string, id: string, claim?: Claim): Promise<Route> {
  const route: Route = { owner: 'alice', kind: 'task', id, agent: idOf(slug), at: Date.now() }
  await store.save([claim === undefined ? route : { ...route, claim }])
  return route
}

test('a verified claim of an external agent is valid for an hour before the supervised agents are queried again', async () => {
  const [sky, liar] = [await agent('sky', 'Weather'), await agent('liar', 'Fables', external)]
  const id = randomUUID()
  await claimed('liar', id, { until: Date.now() + hour, verifiedUntil: Date.now() + hour })
  expect(await taskLocator().find('task', id, caller())).toMatchObject({ route: { agent: idOf('liar') } })
  expect(sky.calls).toEqual([])
  await claimed('liar', id, { until: Date.now() + hour, verifiedUntil: Date.now() - 1 })
  expect(await taskLocator().find('task', id, caller())).toMatchObject({ route: { agent: idOf('liar') } })
  expect(sky.calls).toHaveLength(1)
  const { claim } = (await store.find('alice', 'task', id)) ?? {}
  expect(claim?.verifiedUntil).toBeGreaterThan(Date.now())
  expect(claim?.verifiedUntil).toBeLessThanOrEqual(Date.now() + hour)
  expect(liar.calls).toEqual([])
})

test('a verified claim yields to a supervised agent that later has the task', async () => {
  const [sky] = [await agent('sky', 'Weather'), await agent('liar', 'Fables', external)]
  const { id } = sky.take(saying('hello')) as { id: string }
  await claimed('liar', id, { until: Date.now() + hour, verifiedUntil: Date.now() - 1 })
  expect(await taskLocator().find('task', id, caller())).toMatchObject({ route: { agent: idOf('sky') } })
  expect((await store.find('alice', 'task', id))?.claim).toBeUndefined()
})

test('an expired claim does not count', async () => {
  await agent('sky', 'Weather')
  await agent('liar', 'Fables', external)
  const id = randomUUID()
  await claimed('liar', id, { until: Date.now() - 1, verifiedUntil: Date.now() + hour })
  expect(await taskLocator().find('task', id, caller())).toEqual({ silent: [], unknown: [] })
})

test('a route to an external agent that an earlier version stored is a claim for 30 days after its last message', async () => {
  const [sky] = [await agent('sky', 'Weather'), await agent('liar', 'Fables', external)]
  const [young, old] = [randomUUID(), randomUUID()]
  await claimed('liar', young)
  await store.save([
    { owner: 'alice', kind: 'task', id: old, agent: idOf('liar'), at: Date.now() - 31 * 24 * hour },
  ])
  expect(await taskLocator().find('task', young, caller())).toMatchObject({ route: { agent: idOf('liar') } })
  expect(await taskLocator().find('task', old, caller())).toEqual({ silent: [], unknown: [] })
  expect(sky.calls).toHaveLength(2)
})

test('agents beyond the maximum are reported without being queried', async () => {
  const agents = [await agent('sky', 'Weather'), await agent('board', 'Chess'), await agent('sea', 'Tides')]
  const found = await taskLocator({ agentsMax: 2 }).find('task', randomUUID(), caller())
  expect(agents.flatMap(({ calls }) => calls)).toHaveLength(2)
  expect(found).toEqual({ silent: [], unknown: [expect.any(String)] })
})

test('an agent that may not receive the token is reported without being queried', async () => {
  const sky = await agent('sky', 'Weather')
  const operator = {
    ...caller(),
    token: { ...caller().token, caller: { ...caller().token.caller, scopes: new Set(['agent:admin']) } },
  }
  const found = await taskLocator().find('task', randomUUID(), operator)
  expect([found, sky.calls]).toEqual([{ silent: [], unknown: ['sky'] }, []])
})
