import { taskStates, terminalStates } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import { alice, artifactOf, bob, created, createdIn, next } from './sample-record.cases.ts'
import type { OpenStore } from './store.cases.ts'
import type { Store, TaskQuery, TaskRecord } from './store.ts'

const idsOf = (records: { id: string }[]) => records.map(({ id }) => id)

async function allPages(store: Store, query: TaskQuery): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = await store.listTasks({ ...query, ...(cursor !== undefined && { cursor }) })
    pages.push(idsOf(page.items))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return pages
}

export function taskListCases(open: OpenStore): void {
  test('an owner’s tasks are listed newest first, in pages that neither repeat nor skip tasks', async () => {
    await using store = await open()
    const mine: TaskRecord[] = []
    for (const state of [...taskStates, ...taskStates]) {
      mine.unshift(await createdIn(store, state))
      await createdIn(store, state, { owner: bob })
    }
    const ids = idsOf(mine)
    expect((await store.listTasks({ owner: alice, limit: 100 })).items).toEqual(mine)
    const pages = await allPages(store, { owner: alice, limit: 7 })
    expect(pages.map((page) => page.length)).toEqual([7, 7, 6])
    expect(pages.flat()).toEqual(ids)
    expect(await allPages(store, { owner: alice, limit: 20 })).toEqual([ids])
    expect(await allPages(store, { owner: 'nobody', limit: 20 })).toEqual([[]])
  })

  test('pages stay consistent while tasks are added, changed and removed', async () => {
    await using store = await open()
    const old = [
      await createdIn(store, 'completed'),
      await createdIn(store, 'completed'),
      await created(store),
    ]
    const first = await store.listTasks({ owner: alice, limit: 1 })
    await created(store)
    await store.commitTask(next(old[2] as TaskRecord, 'failed'))
    await store.clearContext(old[2]?.contextId ?? '', alice)
    const cursor = first.nextCursor ?? ''
    expect(idsOf((await store.listTasks({ owner: alice, limit: 9, cursor })).items)).toEqual([
      old[1]?.id,
      old[0]?.id,
    ])
  })

  test.each(taskStates)('by state %s, by context, and by both', async (state) => {
    await using store = await open()
    const contextId = 'c0000000-0000-4000-8000-000000000000'
    const inside: TaskRecord[] = []
    const outside: TaskRecord[] = []
    for (const each of [...taskStates, ...taskStates]) {
      inside.unshift(await createdIn(store, each, { contextId }))
      outside.unshift(await createdIn(store, each))
      await createdIn(store, each, { owner: bob })
    }
    const wanted = inside.filter((record) => record.status.state === state)
    const others = outside.filter((record) => record.status.state === state)
    expect((await store.listTasks({ owner: alice, contextId, states: [state], limit: 9 })).items).toEqual(
      wanted,
    )
    expect((await allPages(store, { owner: alice, contextId, limit: 8 })).flat()).toEqual(idsOf(inside))
    const both = [...wanted, ...others].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1))
    expect((await allPages(store, { owner: alice, states: [state], limit: 1 })).flat()).toEqual(idsOf(both))
    expect((await store.listTasks({ owner: bob, contextId, limit: 9 })).items).toEqual([])
    expect((await store.listTasks({ owner: bob, contextId, states: [state], limit: 9 })).items).toEqual([])
  })

  test('a page of large tasks ends early, and its cursor continues', async () => {
    await using store = await open()
    const artifacts = [artifactOf({ kind: 'text', text: 'x'.repeat(40 * 1024 * 1024) })]
    const ids: string[] = []
    for (let n = 0; n < 3; n += 1) ids.unshift((await created(store, { artifacts })).id)
    const pages = await allPages(store, { owner: alice, limit: 100 })
    expect(pages.flat()).toEqual(ids)
    expect(pages.length).toBeGreaterThan(1)
  })

  test.each([
    ['empty', () => ''],
    ['no base64', () => '!§$'],
    ['a number', () => '12'],
    ['too long', () => 'A'.repeat(100_000)],
    ['forged', () => Buffer.from(JSON.stringify(3)).toString('base64url')],
    ['cut', (cursor: string) => cursor.slice(0, -4)],
    [
      'changed in its first bytes',
      (cursor: string) => `${cursor.startsWith('A') ? 'B' : 'A'}${cursor.slice(1)}`,
    ],
    [
      'changed in its middle',
      (cursor: string) => `${cursor.slice(0, 17)}${cursor[17] === 'A' ? 'B' : 'A'}${cursor.slice(18)}`,
    ],
    ['from another list', (_: string, other: string) => other],
    ['from another owner', (_: string, __: string, bobs: string) => bobs],
  ])('a cursor that is %s is rejected with InvalidParams', async (_title, make) => {
    await using store = await open()
    for (const owner of [alice, bob, alice, bob]) await created(store, { owner })
    const cursorOf = async (owner: string) => (await store.listTasks({ owner, limit: 1 })).nextCursor ?? ''
    const contexts = (await store.listContexts({ owner: alice, limit: 1 })).nextCursor ?? ''
    const cursor = make(await cursorOf(alice), contexts, await cursorOf(bob))
    const refused = { error: 'InvalidParams', data: { issues: [{ path: 'cursor' }] } }
    await expect(store.listTasks({ owner: alice, limit: 1, cursor })).rejects.toMatchObject(refused)
    const other = make(
      contexts,
      await cursorOf(alice),
      (await store.listContexts({ owner: bob, limit: 1 })).nextCursor ?? '',
    )
    await expect(store.listContexts({ owner: alice, limit: 1, cursor: other })).rejects.toMatchObject(refused)
  })

  test('a cursor does not reveal the number of tasks', async () => {
    await using store = await open()
    await created(store)
    await created(store)
    const first = await store.listTasks({ owner: alice, limit: 1 })
    const second = await store.listTasks({ owner: alice, limit: 1 })
    expect(first.nextCursor).not.toBe(second.nextCursor)
  })

  test('listUnfinished returns submitted and working tasks without a valid lease, oldest first', async () => {
    await using store = await open()
    const now = 1_000_000
    const submitted = await created(store)
    for (const state of taskStates)
      if (state !== 'submitted' && state !== 'working') await createdIn(store, state)
    const leased = async (holder: string, until: number) => {
      const record = await created(store, { lease: { holder, until } })
      await store.commitTask(next(record, 'working'))
      return record.id
    }
    const ended = await leased('me', now - 1)
    await leased('me', now + 1)
    const others = await leased('a dead process', now + 1)
    const free = await createdIn(store, 'working')
    const left = await created(store, { lease: { holder: 'me', until: now - 1 } })
    await created(store, { lease: { holder: 'me', until: now + 1 } })
    const found = idsOf(await store.listUnfinished(now, 'me'))
    const had = [ended, ...(store.exclusive ? [others] : []), free.id, left.id]
    expect(found).toEqual([submitted.id, ...had])
    expect(idsOf(await store.listUnfinished(now, 'me', 'left'))).toEqual(had)
  })

  test('listDue returns paused tasks whose time has passed, earliest first, up to the limit', async () => {
    await using store = await open()
    const paused = async (dueAt: number) => {
      const record = await created(store)
      await store.commitTask(next(record, 'input-required', { dueAt }))
      return record
    }
    const [late, later, never] = [await paused(20), await paused(10), await paused(100)]
    await createdIn(store, 'completed', { dueAt: 5 })
    await createdIn(store, 'input-required')
    expect(await store.listDue(20, 10)).toEqual([later.id, late.id])
    expect(await store.listDue(20, 1)).toEqual([later.id])
    await store.commitTask({ ...next(next(never, 'failed')), dueAt: 1 })
    expect(await store.listDue(99, 10)).toEqual([later.id, late.id])
  })

  test('listDue with `ended` returns only ended tasks whose time has passed, also after another change', async () => {
    await using store = await open()
    const ended = await createdIn(store, 'canceled', { dueAt: 5 })
    await createdIn(store, 'failed')
    await createdIn(store, 'input-required', { dueAt: 5 })
    expect(await store.listDue(5, 10, 'ended')).toEqual([ended.id])
    expect(await store.listDue(4, 10, 'ended')).toEqual([])
    const later = next(ended, 'canceled', { dueAt: 9 })
    await store.commitTask(later)
    expect(await store.listDue(8, 10, 'ended')).toEqual([])
    const { dueAt: _dueAt, ...done } = next(later, 'canceled')
    await store.commitTask(done)
    expect(await store.listDue(99, 10, 'ended')).toEqual([])
  })

  test('countByState counts the current unfinished tasks and all tasks that have ever ended', async () => {
    await using store = await open()
    expect(await store.countByState()).toEqual({})
    for (const state of taskStates) await createdIn(store, state)
    const again = await createdIn(store, 'completed')
    const all = Object.fromEntries(taskStates.map((state) => [state, 1]))
    expect(await store.countByState()).toEqual({ ...all, completed: 2 })
    // An ended task that is committed again counts only once.
    await store.commitTask(next(again, 'completed'))
    await store.clearContext(again.contextId, alice)
    await createdIn(store, 'working')
    await created(store, { status: { state: 'rejected', timestamp: 't' } })
    expect(await store.countByState()).toEqual({ ...all, completed: 2, working: 2, rejected: 2 })
  })

  test('the history of a context contains its newest ended tasks, oldest first', async () => {
    await using store = await open()
    const contextId = 'c0000000-0000-4000-8000-000000000000'
    const ended: TaskRecord[] = []
    for (const state of taskStates) {
      const record = await createdIn(store, state, { contextId })
      if ((terminalStates as readonly string[]).includes(state)) ended.push(record)
    }
    await createdIn(store, 'completed')
    expect(await store.contextHistory(contextId, alice, 50)).toEqual(ended)
    expect(await store.contextHistory(contextId, alice, 2)).toEqual(ended.slice(-2))
    expect(await store.contextHistory(contextId, bob, 50)).toEqual([])
  })
}
