import { expect, test } from 'vitest'
import { alice, bob, created, createdIn, next, sampleRecord } from './sample-record.cases.ts'
import type { OpenStore } from './store.cases.ts'
import type { Feedback, IdempotencyRecord } from './store.ts'

const contextId = 'c0000000-0000-4000-8000-000000000000'
const day = 24 * 60 * 60 * 1000

export function contextCases(open: OpenStore): void {
  test('a context is created for its owner by its first task and updated by each new one', async () => {
    await using store = await open()
    expect(await store.findContext(contextId, alice)).toBeUndefined()
    const first = await created(store, { contextId })
    const context = { id: contextId, owner: alice, createdAt: first.createdAt, updatedAt: first.createdAt }
    expect(await store.findContext(contextId, alice)).toEqual(context)
    expect(await store.findContext(contextId, bob)).toBeUndefined()
    const second = await created(store, { contextId })
    expect(await store.findContext(contextId, alice)).toEqual({ ...context, updatedAt: second.createdAt })
  })

  test('a context keeps the client’s name of its first task, in lists too', async () => {
    await using store = await open()
    const first = await created(store, { contextId, contextName: 'msg-1' })
    expect(first).toEqual(await store.loadTask(first.id))
    await created(store, { contextId })
    await created(store, { contextId, contextName: 'another' })
    expect(await store.findContext(contextId, alice)).toMatchObject({ id: contextId, name: 'msg-1' })
    const [listed] = (await store.listContexts({ owner: alice, limit: 1 })).items
    expect(listed).toMatchObject({ id: contextId, name: 'msg-1', taskCount: 3 })
    const unnamed = await created(store)
    await created(store, { contextId: unnamed.contextId, contextName: 'late' })
    expect(await store.findContext(unnamed.contextId, alice)).not.toHaveProperty('name')
  })

  test('a task in another owner’s context is rejected and not stored', async () => {
    await using store = await open()
    await created(store, { contextId })
    const theirs = sampleRecord({ contextId, owner: bob })
    const refused = { error: 'ContextNotFound', data: { contextId } }
    const [outcome] = await Promise.allSettled([store.createTask(theirs), created(store, { contextId })])
    expect(outcome).toMatchObject({ status: 'rejected', reason: refused })
    expect(await store.loadTask(theirs.id)).toBeUndefined()
    expect(await store.contextHistory(contextId, bob, 9)).toEqual([])
  })

  test('contexts are listed page by page, most recently changed first, each with its oldest tasks first', async () => {
    await using store = await open()
    const one = await createdIn(store, 'completed')
    const two = await createdIn(store, 'completed')
    await created(store, { owner: bob })
    const three = await createdIn(store, 'input-required', { contextId: one.contextId })
    const expected = [
      {
        id: one.contextId,
        owner: alice,
        createdAt: one.createdAt,
        updatedAt: three.createdAt,
        taskIds: [one.id, three.id],
        taskCount: 2,
        busy: true,
      },
      {
        id: two.contextId,
        owner: alice,
        createdAt: two.createdAt,
        updatedAt: two.createdAt,
        taskIds: [two.id],
        taskCount: 1,
        busy: false,
      },
    ]
    expect(await store.listContexts({ owner: alice, limit: 2 })).toEqual({ items: expected })
    const first = await store.listContexts({ owner: alice, limit: 1 })
    const cursor = first.nextCursor ?? ''
    const second = await store.listContexts({ owner: alice, limit: 1, cursor })
    expect([...first.items, ...second.items]).toEqual(expected)
    expect(second.nextCursor).toBeUndefined()
    expect(await store.listContexts({ owner: 'nobody', limit: 1 })).toEqual({ items: [] })
  })

  test('clearing a context removes its tasks and all data that belongs to them', async () => {
    await using store = await open()
    const text = 'x'.repeat(5000)
    const parts = [{ kind: 'text' as const, text }]
    const task = await createdIn(store, 'completed', {
      contextId,
      artifacts: [{ artifactId: 'a', name: 'n', parts }],
    })
    const stays = await createdIn(store, 'completed')
    await store.saveFeedback({ taskId: task.id, owner: alice, feedback: 'good', at: 't' })
    const key = { owner: alice, key: 'k', bodyHash: 'h', taskId: task.id, expiresAt: Date.now() + day }
    await store.claimIdempotencyKey(key)
    expect(await store.clearContext(contextId, alice)).toBe('cleared')
    expect(await store.loadTask(task.id)).toBeUndefined()
    expect(await store.findContext(contextId, alice)).toBeUndefined()
    expect(await store.findFeedback(task.id, alice)).toBeUndefined()
    expect(await store.claimIdempotencyKey(key)).toBeUndefined()
    expect((await store.listTasks({ owner: alice, limit: 9 })).items).toEqual([stays])
    expect(await store.clearContext(contextId, alice)).toBe('absent')
    // Any owner can use the ids again.
    await created(store, { id: task.id, contextId, owner: bob })
    expect(await store.findContext(contextId, bob)).toBeDefined()
  })

  test('a context cannot be cleared by another owner or while one of its tasks has not ended', async () => {
    await using store = await open()
    const ended = await createdIn(store, 'completed', { contextId })
    const paused = await createdIn(store, 'auth-required', { contextId })
    expect(await store.clearContext(contextId, bob)).toBe('absent')
    expect(await store.clearContext(contextId, alice)).toBe('busy')
    expect(await store.loadTask(ended.id)).toEqual(ended)
    await store.commitTask(next(paused, 'canceled'))
    expect(await store.clearContext(contextId, alice)).toBe('cleared')
  })

  test('concurrent clearing and creating either returns busy or leaves a new context with only the new task', async () => {
    await using store = await open()
    for (const clearFirst of [true, false]) {
      const old = await createdIn(store, 'completed', { contextId })
      const fresh = sampleRecord({ contextId })
      const clear = () => store.clearContext(contextId, alice)
      const create = () => store.createTask(fresh)
      const outcomes = await Promise.all(clearFirst ? [clear(), create()] : [create(), clear()])
      const left = (await store.listTasks({ owner: alice, contextId, limit: 9 })).items.map(({ id }) => id)
      expect(left).toEqual(outcomes.includes('busy') ? [fresh.id, old.id] : [fresh.id])
      const context = (await store.listContexts({ owner: alice, limit: 9 })).items
      expect(context).toMatchObject([{ id: contextId, taskIds: left.toReversed() }])
      await store.commitTask(next(fresh, 'completed'))
      expect(await store.clearContext(contextId, alice)).toBe('cleared')
    }
  })

  test('an idempotency key is claimed once per owner until it expires', async () => {
    let now = 1000
    await using store = await open({ clock: () => now })
    const mine: IdempotencyRecord = {
      owner: alice,
      key: 'k',
      bodyHash: 'h1',
      taskId: 't1',
      expiresAt: 1000 + day,
    }
    const again = { ...mine, bodyHash: 'h2', taskId: 't2' }
    expect(await store.claimIdempotencyKey(mine)).toBeUndefined()
    expect(await store.claimIdempotencyKey(again)).toEqual(mine)
    expect(await store.claimIdempotencyKey({ ...mine, owner: bob })).toBeUndefined()
    now = 1000 + day
    expect(await store.claimIdempotencyKey({ ...again, expiresAt: now + day })).toBeUndefined()
    expect(await store.claimIdempotencyKey(mine)).toEqual({ ...again, expiresAt: now + day })
  })

  test('only one of 20 concurrent claims of a key succeeds, and the others receive its record', async () => {
    await using store = await open()
    const claims = Array.from({ length: 20 }, (_, n): IdempotencyRecord => {
      return { owner: alice, key: 'k', bodyHash: `h${n}`, taskId: `t${n}`, expiresAt: Date.now() + day }
    })
    const heard = await Promise.all(claims.map((claim) => store.claimIdempotencyKey(claim)))
    const first = claims.filter((_, n) => heard[n] === undefined)
    expect(first).toHaveLength(1)
    expect(heard.filter((one) => one !== undefined)).toEqual(Array(19).fill(first[0]))
  })

  test('an owner’s feedback replaces that owner’s earlier feedback and is hidden from other owners', async () => {
    await using store = await open()
    const { id: taskId } = await createdIn(store, 'completed')
    const feedback: Feedback = { taskId, owner: alice, feedback: 'so \ud800 so', rating: 3, at: 't1' }
    await store.saveFeedback(feedback)
    expect(await store.findFeedback(taskId, alice)).toEqual(feedback)
    const better: Feedback = { taskId, owner: alice, feedback: 'good', metadata: { a: [1] }, at: 't2' }
    await store.saveFeedback(better)
    expect(await store.findFeedback(taskId, alice)).toEqual(better)
    expect(await store.findFeedback(taskId, bob)).toBeUndefined()
    await store.saveFeedback({ ...feedback, taskId: 'gone' })
    expect(await store.findFeedback('gone', alice)).toBeUndefined()
  })

  test('old ended tasks are removed with all their data, oldest first and up to the limit', async () => {
    await using store = await open()
    const old = [
      await createdIn(store, 'completed', { contextId }),
      await createdIn(store, 'failed'),
      await createdIn(store, 'canceled'),
    ]
    const open1 = await createdIn(store, 'input-required', { contextId })
    await store.saveFeedback({ taskId: old[0]?.id ?? '', owner: alice, feedback: 'x', at: 't' })
    const edge = await createdIn(store, 'completed')
    const before = edge.updatedAt
    expect(await store.removeEnded(before, 2)).toBe(2)
    expect(await store.loadTask(old[0]?.id ?? '')).toBeUndefined()
    expect(await store.findFeedback(old[0]?.id ?? '', alice)).toBeUndefined()
    expect(await store.findContext(old[1]?.contextId ?? '', alice)).toBeUndefined()
    expect(await store.removeEnded(before, 2)).toBe(1)
    expect(await store.removeEnded(before, 2)).toBe(0)
    expect((await store.listTasks({ owner: alice, limit: 9 })).items).toEqual([edge, open1])
    const contexts = (await store.listContexts({ owner: alice, limit: 9 })).items
    expect(contexts.map(({ id, taskIds }) => [id, taskIds])).toEqual([
      [edge.contextId, [edge.id]],
      [contextId, [open1.id]],
    ])
  })
}
