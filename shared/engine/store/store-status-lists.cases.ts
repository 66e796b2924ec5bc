import { type TaskState, taskStates } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import { alice, artifactOf, bob, created, createdIn, next } from './sample-record.cases.ts'
import type { OpenStore } from './store.cases.ts'
import type { Store, TaskQuery, TaskRecord } from './store.ts'

const contextId = 'c0000000-0000-4000-8000-000000000000'
/** Open, paused and ended states. */
const mixed: TaskState[] = ['completed', 'input-required', 'working', 'payment-required']
const idsOf = (records: { id: string }[]) => records.map(({ id }) => id)

async function pagesOf(store: Store, query: Omit<TaskQuery, 'order'>): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const at = cursor === undefined ? {} : { cursor }
    const page = await store.listTasks({ ...query, order: 'status', ...at })
    pages.push(idsOf(page.items))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return pages
}

/** Creates tasks in every state, half of them in the context, whose order by status differs from that by creation. */
async function filled(store: Store): Promise<TaskRecord[]> {
  const open: TaskRecord[] = []
  for (const [index, state] of [...taskStates, ...taskStates].entries()) {
    open.push(await created(store, index % 3 === 0 ? { contextId } : {}))
    await createdIn(store, state, { owner: bob })
  }
  const states = [...taskStates, ...taskStates]
  const changed: TaskRecord[] = []
  for (const [index, record] of open.toReversed().entries()) {
    const changedTo = next(record, states[index])
    await store.commitTask(changedTo)
    changed.unshift(changedTo)
  }
  return changed
}

/** Lists by status, with filters and totals. */
export function statusListCases(open: OpenStore): void {
  test('by status: the newest status comes first, in pages that neither repeat nor skip tasks', async () => {
    await using store = await open()
    const mine = await filled(store)
    const ids = idsOf(mine)
    expect((await store.listTasks({ owner: alice, limit: 99, order: 'status' })).items).toEqual(mine)
    const pages = await pagesOf(store, { owner: alice, limit: 7 })
    expect(pages.map(({ length }) => length)).toEqual([7, 7, 6])
    expect(pages.flat()).toEqual(ids)
    const created = await store.listTasks({ owner: alice, limit: 99, order: 'created' })
    expect(idsOf(created.items)).toEqual(ids.toReversed())
    expect(await pagesOf(store, { owner: 'carol', limit: 7 })).toEqual([[]])
  })

  test('by status: a change of the task moves it to the front, and a change without a new status does not', async () => {
    await using store = await open()
    const [one, two] = [await createdIn(store, 'working'), await createdIn(store, 'completed')]
    const changed = { ...next(one), status: one.status }
    await store.commitTask(changed)
    expect(await pagesOf(store, { owner: alice, limit: 9 })).toEqual([[two.id, one.id]])
    await store.commitTask(next(changed, 'failed'))
    expect(await pagesOf(store, { owner: alice, limit: 9 })).toEqual([[one.id, two.id]])
  })

  test('tasks whose statuses have the same time are on exactly one page each', async () => {
    await using store = await open()
    const timestamp = '2026-01-01T00:00:00.000000+00:00'
    const ids: string[] = []
    for (const state of [...taskStates, ...taskStates])
      ids.push((await created(store, { status: { state, timestamp } })).id)
    const pages = await pagesOf(store, { owner: alice, limit: 3 })
    expect(pages.flat().toSorted()).toEqual(ids.toSorted())
  })

  test.each(taskStates)('by status: filters by state %s, by context, and by both', async (state) => {
    await using store = await open()
    const mine = await filled(store)
    const inside = mine.filter((record) => record.contextId === contextId)
    const ofState = (records: TaskRecord[]) =>
      idsOf(records.filter((record) => record.status.state === state))
    expect((await pagesOf(store, { owner: alice, contextId, limit: 3 })).flat()).toEqual(idsOf(inside))
    expect((await pagesOf(store, { owner: alice, states: [state], limit: 1 })).flat()).toEqual(ofState(mine))
    expect((await pagesOf(store, { owner: alice, contextId, states: [state], limit: 1 })).flat()).toEqual(
      ofState(inside),
    )
    expect(await pagesOf(store, { owner: bob, contextId, limit: 3 })).toEqual([[]])
  })

  test('several states form one list in either order, whose pages neither repeat nor skip tasks', async () => {
    await using store = await open()
    const mine = (await filled(store)).filter(({ status }) => mixed.includes(status.state))
    const inside = mine.filter((record) => record.contextId === contextId)
    for (const states of [mixed, mixed.toReversed(), [...mixed, ...mixed]]) {
      const query = { owner: alice, states }
      expect(await pagesOf(store, { ...query, limit: 99 })).toEqual([idsOf(mine)])
      expect((await pagesOf(store, { ...query, limit: 3 })).flat()).toEqual(idsOf(mine))
      expect((await pagesOf(store, { ...query, contextId, limit: 1 })).flat()).toEqual(idsOf(inside))
      const created = await store.listTasks({ ...query, limit: 99, order: 'created' })
      expect(idsOf(created.items)).toEqual(idsOf(mine).toReversed())
    }
    expect(await pagesOf(store, { owner: alice, states: [], limit: 3 })).toEqual([[]])
    expect(await pagesOf(store, { owner: 'carol', states: mixed, limit: 3 })).toEqual([[]])
  })

  test('statusSince selects the statuses of this time and later ones, in pages', async () => {
    await using store = await open()
    const mine = await filled(store)
    const statusSince = mine[8]?.status.timestamp ?? ''
    const newer = idsOf(mine.slice(0, 9))
    expect(await pagesOf(store, { owner: alice, statusSince, limit: 99 })).toEqual([newer])
    expect((await pagesOf(store, { owner: alice, statusSince, limit: 2 })).flat()).toEqual(newer)
    const inside = idsOf(mine.slice(0, 9).filter((record) => record.contextId === contextId))
    expect((await pagesOf(store, { owner: alice, contextId, statusSince, limit: 2 })).flat()).toEqual(inside)
    expect(await pagesOf(store, { owner: alice, statusSince: '9999', limit: 2 })).toEqual([[]])
  })

  test('the total counts the tasks on all pages, for each order and filter, and only those of the owner', async () => {
    await using store = await open()
    const mine = await filled(store)
    const statusSince = mine[8]?.status.timestamp ?? ''
    const filters: [Partial<TaskQuery>, (record: TaskRecord) => boolean][] = [
      [{}, () => true],
      [{ states: ['failed'] }, ({ status }) => status.state === 'failed'],
      [{ states: ['working'] }, ({ status }) => status.state === 'working'],
      [{ states: mixed }, ({ status }) => mixed.includes(status.state)],
      [{ contextId }, (record) => record.contextId === contextId],
      [
        { contextId, states: ['completed'] },
        (record) => record.contextId === contextId && record.status.state === 'completed',
      ],
      [{ contextId: 'd0000000-0000-4000-8000-000000000000' }, () => false],
    ]
    for (const [filter, isCounted] of filters) {
      const count = { owner: alice, limit: 2, count: true, ...filter }
      const total = mine.filter(isCounted).length
      for (const order of ['status', 'created'] as const) {
        const first = await store.listTasks({ ...count, order })
        expect(first.total).toBe(total)
        if (first.nextCursor === undefined) continue
        const second = await store.outlineTasks({ ...count, order, cursor: first.nextCursor }, () => {})
        expect(second.total).toBe(total)
      }
      const since = await store.listTasks({ ...count, order: 'status', statusSince })
      expect(since.total).toBe(mine.slice(0, 9).filter(isCounted).length)
    }
    expect(await store.listTasks({ owner: alice, limit: 2 })).not.toHaveProperty('total')
    const theirs = { owner: bob, contextId, limit: 2, count: true }
    expect(await store.listTasks(theirs)).toEqual({ items: [], total: 0 })
    await store.clearContext(mine.find(({ status }) => status.state === 'failed')?.contextId ?? '', alice)
  })

  test('a cursor of one order is rejected in the other', async () => {
    await using store = await open()
    await filled(store)
    const cursorOf = async (order: 'created' | 'status') =>
      (await store.listTasks({ owner: alice, limit: 1, order })).nextCursor ?? ''
    const refused = { error: 'InvalidParams', data: { issues: [{ path: 'cursor' }] } }
    for (const [of, other] of [
      ['created', 'status'],
      ['status', 'created'],
    ] as const) {
      const query = { owner: alice, limit: 1, order: other, cursor: await cursorOf(of) }
      await expect(store.listTasks(query)).rejects.toMatchObject(refused)
      await expect(store.listTasks({ ...query, owner: bob, order: of })).rejects.toMatchObject(refused)
    }
  })

  test('outlines without artifacts contain neither small nor large ones, and count no bytes of large ones', async () => {
    await using store = await open()
    const text = (length: number) => ({ kind: 'text' as const, text: 'x'.repeat(length) })
    const artifacts = [artifactOf(text(10)), artifactOf(text(5_000_000))]
    const task = await createdIn(store, 'completed', { artifacts })
    const query = { owner: alice, limit: 9, order: 'status' as const }
    const [small] = (await store.outlineTasks({ ...query, includeArtifacts: false }, () => {})).items
    expect(small?.task).toMatchObject({ id: task.id, artifacts: [], history: task.history })
    expect(small?.bytes).toBeLessThan(10_000)
    const [whole] = (await store.outlineTasks({ ...query, includeArtifacts: true }, () => {})).items
    expect(whole?.task.artifacts).toHaveLength(2)
    expect(whole?.bytes).toBeGreaterThan(5_000_000)
    expect((await store.loadTask(task.id))?.artifacts).toEqual(artifacts)
  })

  test('a removed task is neither listed nor counted', async () => {
    await using store = await open()
    const [one, two] = [await createdIn(store, 'completed'), await createdIn(store, 'completed')]
    await store.clearContext(one.contextId, alice)
    const page = await store.listTasks({ owner: alice, limit: 9, order: 'status', count: true })
    expect({ ids: idsOf(page.items), total: page.total }).toEqual({ ids: [two.id], total: 1 })
  })
}
