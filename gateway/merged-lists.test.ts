import { expect, test } from 'vitest'
import {
  agent,
  bearer,
  call,
  type FakeAgent,
  fail,
  gateway,
  gatewayForEachTest,
  post,
  saying,
} from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'
const chess = 'Plays chess, suggests the best move'
const external = { origin: 'registered', admittedBy: 'operator' }

interface Listed {
  id: string
  context_id: string
  created_at: string
  updated_at: string
  status: { state: string; timestamp: string }
}

const timeAt = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000+00:00`

/**
 * Starts a supervised agent with these tasks, newest first. It pages like real agents, after the newest task of
 * the page.
 */
async function withTasks(
  name: string,
  seconds: readonly number[],
): Promise<FakeAgent & { listed: Listed[] }> {
  const listed = seconds.map((second) => ({
    id: crypto.randomUUID(),
    context_id: crypto.randomUUID(),
    created_at: timeAt(second),
    updated_at: timeAt(second),
    status: { state: 'completed', timestamp: timeAt(59 - second) },
  }))
  const one = Object.assign(await agent(name, name), { listed })
  const answer: FakeAgent['on'][string] = ({ params, response }) => {
    const before = params['cursor'] as string | undefined
    const behind = one.listed.filter(({ created_at }) => before === undefined || created_at < before)
    const page = behind.slice(0, Number(params['limit'] ?? 1000))
    if (page.length < behind.length) response.setHeader('x-next-cursor', page.at(-1)?.created_at ?? '')
    return page
  }
  one.on = { 'tasks/list': answer, 'contexts/list': answer }
  return one
}

/** Reads all pages. `between` runs after each page. */
async function pages(method: string, limit: number, between?: (page: Listed[]) => void): Promise<Listed[]> {
  const read: Listed[] = []
  let cursor: string | null = null
  for (let number = 0; number < 100; number += 1) {
    const answer = await call(method, { limit, ...(cursor === null ? {} : { cursor }) })
    expect([answer.status, answer.headers.get('x-parley-incomplete')]).toEqual([200, null])
    read.push(...(answer.json.result as Listed[]))
    cursor = answer.headers.get('x-next-cursor')
    if (cursor === null) return read
    between?.(answer.json.result as Listed[])
  }
  throw new Error('the list does not end')
}

const idsOf = (items: readonly { id: string }[]) => items.map(({ id }) => id)
const newestFirst = (items: readonly Listed[]) =>
  items.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))

test.each(['tasks/list', 'contexts/list'])(
  '%s of the gateway includes tasks sent to a named agent and tasks created at the agent directly',
  async (method) => {
    const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
    for (const one of [sky, board])
      one.on['contexts/list'] = () => [...one.tasks.values()].map((task) => ({ ...task, updated_at: '' }))
    const sent = { jsonrpc: '2.0', id: 1, method: 'message/send', params: saying('hello') }
    await post('/agents/sky/', JSON.stringify(sent))
    board.take(saying('hello'))
    const listed = await call(method, {})
    expect(idsOf(listed.json.result).toSorted()).toEqual(
      [...sky.tasks.keys(), ...board.tasks.keys()].toSorted(),
    )
    expect(listed.headers.get('x-parley-incomplete')).toBeNull()
  },
)

test.each(['tasks/list', 'contexts/list'])(
  '%s merges the items of 40 agents page by page, newest first, and lists each item once',
  async (method) => {
    const agents: Listed[][] = []
    for (let number = 0; number < 40; number += 1)
      agents.push((await withTasks(`agent-${number}`, [number + 15, number % 15])).listed)
    const all = agents.flat()
    expect(idsOf((await call(method, {})).json.result).toSorted()).toEqual(idsOf(all).toSorted())
    const read = await pages(method, 7)
    expect(idsOf(read).toSorted()).toEqual(idsOf(all).toSorted())
    const times = read.map(({ created_at }) => created_at)
    expect(times).toEqual(times.toSorted().reverse())
  },
)

test('tasks are sorted by creation time, no matter when their state last changed', async () => {
  const agents = [await withTasks('sky', [9, 6, 1]), await withTasks('board', [8, 7, 2])]
  const all = newestFirst(agents.flatMap(({ listed }) => listed))
  expect(idsOf((await call('tasks/list', {})).json.result)).toEqual(idsOf(all))
  for (const limit of [1, 2, 4]) expect(idsOf(await pages('tasks/list', limit))).toEqual(idsOf(all))
})

test.each(['tasks/list', 'contexts/list'])(
  'in %s, items removed between two pages cause neither duplicates nor gaps',
  async (method) => {
    const agents = [await withTasks('sky', [9, 6, 5, 3, 1]), await withTasks('board', [8, 7, 4, 2])]
    const all = newestFirst(agents.flatMap(({ listed }) => listed))
    const read = await pages(method, 3, (page) => {
      for (const one of agents)
        one.listed = one.listed.filter(({ id }) => page.every((shown) => shown.id !== id))
    })
    expect(idsOf(read)).toEqual(idsOf(all))
  },
)

test('new items between two pages cause no duplicates', async () => {
  const sky = await withTasks('sky', [9, 6, 5])
  const all = idsOf(sky.listed)
  let second = 20
  const read = await pages('tasks/list', 2, () => {
    const [first] = sky.listed
    if (first !== undefined)
      sky.listed = [{ ...first, id: crypto.randomUUID(), created_at: timeAt(second++) }, ...sky.listed]
  })
  expect(idsOf(read)).toEqual(all)
})

test('an external agent with tasks of the caller is reported but receives nothing', async () => {
  const [tales, sky] = [await agent('tales', 'Tells fables', external), await withTasks('sky', [1])]
  await call('message/send', saying('tells fables'))
  for (const method of ['tasks/list', 'contexts/list']) {
    const listed = await call(method, {})
    expect(listed.headers.get('x-parley-incomplete')).toBe('tales')
    expect(idsOf(listed.json.result)).toEqual(idsOf(sky.listed))
  }
  const others = await call('tasks/list', {}, { authorization: bearer('bob') })
  expect(others.headers.get('x-parley-incomplete')).toBeNull()
  expect(tales.calls.map(({ method }) => method)).toEqual(['message/send'])
})

test('an agent that is down, rejects the query or is quarantined is reported, and the next page has its items after it recovers', async () => {
  const [sky, board] = [await withTasks('sky', [9, 5, 1]), await withTasks('board', [8])]
  await withTasks('sea', [7])
  const { registry } = gateway()
  const idOf = (slug: string) => registry.find(slug)?.id ?? ''
  const answer = board.on['tasks/list']
  board.on['tasks/list'] = ({ response, id }) => fail(response, id, 403, -32013, {})
  registry.setStatus(idOf('sea'), 'starting')
  const first = await call('tasks/list', { limit: 1 })
  expect(first.headers.get('x-parley-incomplete')?.split(', ').toSorted()).toEqual(['board', 'sea'])
  expect(idsOf(first.json.result)).toEqual(idsOf(sky.listed.slice(0, 1)))
  board.on = answer === undefined ? {} : { 'tasks/list': answer }
  registry.setStatus(idOf('sea'), 'ready')
  await registry.quarantine(idOf('sea'), 'operator', 'broken')
  const second = await call('tasks/list', { cursor: first.headers.get('x-next-cursor') })
  expect(second.headers.get('x-parley-incomplete')).toBe('sea')
  expect(idsOf(second.json.result)).toEqual(idsOf([...board.listed, ...sky.listed.slice(1)]))
})

test('an agent that has left the registry is reported in lists and lookups if it has tasks of the caller', async () => {
  await agent('board', 'Plays chess')
  const own = { origin: 'registered', admittedBy: 'operator', own: true }
  const sky = await agent('sky', 'Weather forecast for any city', own)
  const { registry } = gateway()
  expect((await call('message/send', saying('weather forecast'))).headers.get('x-agent')).toBe('sky')
  await registry.leave(registry.bySlug(sky.slug)?.id ?? '')
  expect((await call('tasks/list', {})).headers.get('x-parley-incomplete')).toBe('sky')
  const missing = await call('tasks/get', { task_id: crypto.randomUUID() })
  expect([missing.status, missing.headers.get('x-parley-incomplete')]).toEqual([404, 'sky'])
})
