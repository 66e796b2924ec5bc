import { delegatedOwner } from '@parley/kit/auth/caller'
import { type TaskState, taskStates } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import type { AllTasksQuery } from './all-tasks.ts'
import { alice, artifactOf, bob, created, createdIn, next } from './sample-record.cases.ts'
import type { OpenStore } from './store.cases.ts'
import type { Store, TaskRecord } from './store.ts'

const idsOf = (records: { id: string }[]) => records.map(({ id }) => id)
const anyTask = { limit: 100 }

async function pagesOf(store: Store, query: AllTasksQuery): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = await store.listAllTasks({ ...query, ...(cursor !== undefined && { cursor }) })
    pages.push(idsOf(page.items))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return pages
}

/** Creates two tasks in every state, of several owners, and returns them with the newest status first. */
async function filled(store: Store): Promise<TaskRecord[]> {
  const owners = [alice, bob, delegatedOwner(alice, 'planner'), delegatedOwner(alice, 'writer')]
  const open: TaskRecord[] = []
  for (const [index] of [...taskStates, ...taskStates].entries())
    open.push(await created(store, { owner: owners[index % owners.length] ?? alice }))
  const states: TaskState[] = [...taskStates, ...taskStates]
  const changed: TaskRecord[] = []
  for (const [index, record] of open.toReversed().entries()) {
    const task = next(record, states[index])
    await store.commitTask(task)
    changed.unshift(task)
  }
  return changed
}

/** Lists over all owners, for operators. */
export function allTaskListCases(open: OpenStore): void {
  test('of all owners: the newest status comes first, in pages that neither repeat nor skip tasks', async () => {
    await using store = await open()
    const all = idsOf(await filled(store))
    const pages = await pagesOf(store, { limit: 7 })
    expect(pages.map(({ length }) => length)).toEqual([7, 7, 6])
    expect(pages.flat()).toEqual(all)
  })

  test('of all owners: filters by owner with the tasks that agents created for it, by state, context and time', async () => {
    await using store = await open()
    const all = await filled(store)
    const ofAlice = all.filter(({ owner }) => owner !== bob)
    expect((await pagesOf(store, { owner: alice, limit: 4 })).flat()).toEqual(idsOf(ofAlice))
    expect(await pagesOf(store, { ...anyTask, owner: `${alice}0` })).toEqual([[]])
    const states: TaskState[] = ['failed', 'working']
    const inStates = all.filter(({ status }) => states.includes(status.state))
    expect((await pagesOf(store, { states, limit: 1 })).flat()).toEqual(idsOf(inStates))
    const [one] = all
    expect(await pagesOf(store, { ...anyTask, contextId: one?.contextId ?? '' })).toEqual([[one?.id]])
    expect(await pagesOf(store, { ...anyTask, contextId: 'none' })).toEqual([[]])
    const [until = '', since = ''] = [all[3], all[9]].map((task) => task?.status.timestamp)
    expect((await pagesOf(store, { since, until, limit: 2 })).flat()).toEqual(idsOf(all.slice(4, 10)))
  })

  test('of all owners: a change of the status moves the task to the front, and tasks of one time are each on one page', async () => {
    await using store = await open()
    const timestamp = '2026-01-01T00:00:00.000000+00:00'
    const tasks: TaskRecord[] = []
    for (const state of taskStates) tasks.push(await created(store, { status: { state, timestamp } }))
    expect((await pagesOf(store, { limit: 3 })).flat().toSorted()).toEqual(idsOf(tasks).toSorted())
    const [first] = tasks
    if (first !== undefined) await store.commitTask(next(first, 'working'))
    expect((await store.listAllTasks({ limit: 1 })).items).toMatchObject([{ id: first?.id, owner: alice }])
  })

  test('of all owners: tasks have no artifacts, and large parts of their messages are not read', async () => {
    await using store = await open()
    const artifacts = [artifactOf({ kind: 'text', text: 'x'.repeat(5000) })]
    const { id, history } = await createdIn(store, 'completed', { artifacts, owner: bob })
    const { items } = await store.listAllTasks(anyTask)
    expect(items).toMatchObject([{ id, history, artifacts: [], status: { state: 'completed' } }])
  })

  test('of all owners: a cursor of another list is refused', async () => {
    await using store = await open()
    await filled(store)
    const { nextCursor = '' } = await store.listTasks({ owner: alice, limit: 1, order: 'status' })
    expect(nextCursor).not.toBe('')
    await expect(store.listAllTasks({ ...anyTask, cursor: nextCursor })).rejects.toMatchObject({
      error: 'InvalidParams',
    })
  })
}
