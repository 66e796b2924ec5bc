import { expect, test } from 'vitest'
import { alice, bob, created, createdIn, messageOf, sampleRecord } from './sample-record.cases.ts'
import type { OpenStore } from './store.cases.ts'
import { samplePayment } from './store-payments.cases.ts'
import { samplePushConfig } from './store-webhooks.cases.ts'

/**
 * Texts that a database could misinterpret or confuse with each other.
 * @param halves lone surrogates, if the adapter distinguishes them in keys; introspection never returns one
 */
export function badInputCases(open: OpenStore, halves: string[] = []): void {
  test.each<[string, string]>([
    ['the text of an operator', '{"$gt": ""}'],
    ['a string with a dollar sign', '$where'],
    ['a string with dots', 'a.b.c'],
    ['a string with NUL', 'a\0b'],
    ...halves.map((half): [string, string] => ['half a surrogate pair', `a${half}`]),
    ['100,000 characters long', 'x'.repeat(100_000)],
    ['similar to a stored hash', '#x'],
    ['an empty string', ''],
  ])('an owner that is %s has only its own tasks', async (_title, owner) => {
    await using store = await open()
    const task = await createdIn(store, 'completed', { owner })
    await createdIn(store, 'completed', { owner: `${owner}\ufffd` })
    await createdIn(store, 'completed', { owner: 'a\ufffd' })
    expect(await store.findTask(task.id, owner)).toEqual(task)
    expect((await store.listTasks({ owner, limit: 9 })).items).toEqual([task])
    expect((await store.listContexts({ owner, limit: 9 })).items).toMatchObject([{ taskIds: [task.id] }])
    expect(await store.findTask(task.id, `${owner}x`)).toBeUndefined()
    expect(await store.clearContext(task.contextId, owner)).toBe('cleared')
  })

  test('metadata and data keys that contain $ and dots are returned unchanged', async () => {
    await using store = await open()
    const data = JSON.parse('{"$set": {"owner": "bob"}, "a.b": {"$gt": ""}, "__proto__": {"x": 1}, "": 0}')
    const record = sampleRecord()
    record.history = [messageOf([{ kind: 'data', data, metadata: data }], record)]
    await store.createTask(record)
    expect(JSON.stringify(await store.loadTask(record.id))).toContain(JSON.stringify(data))
    const feedback = { taskId: record.id, owner: alice, feedback: 'f', metadata: data, at: 't' }
    await store.saveFeedback(feedback)
    expect(JSON.stringify((await store.findFeedback(record.id, alice))?.metadata)).toBe(JSON.stringify(data))
  })

  test.each<[string, string, string]>([
    ...halves.map((half): [string, string, string] => ['half a surrogate pair', `k${half}`, 'k\ufffd']),
    ['a final NUL', 'k', 'k\0'],
    ['the text after NUL', 'k\0a', 'k\0b'],
    ['case', 'k', 'K'],
    ['a trailing space', 'k', 'k '],
    ['Unicode composition', 'k\u00e9', 'ke\u0301'],
    ['%', 'k%', 'kx'],
  ])('keys that differ by %s are distinct wherever a caller uses one', async (_title, one, other) => {
    await using store = await open()
    const task = await createdIn(store, 'completed')
    const claim = (key: string) =>
      store.claimIdempotencyKey({ owner: alice, key, bodyHash: key, taskId: task.id, expiresAt: 9e15 })
    expect([await claim(one), await claim(other)]).toEqual([undefined, undefined])
    expect((await claim(one))?.bodyHash).toBe(one)
    for (const id of [one, other]) await store.webhooks.savePushConfig(samplePushConfig({ task, id }), 5)
    expect((await store.webhooks.findPushConfig(task, one))?.id).toBe(one)
    expect(await store.webhooks.listPushConfigs(task)).toHaveLength(2)
    for (const nonceKey of [one, other])
      expect(await store.payments.addPayment(samplePayment({ nonceKey, captureToken: nonceKey }))).toBe(
        'added',
      )
    expect((await store.payments.findByNonce(other))?.nonceKey).toBe(other)
    expect((await store.payments.findByCapture(one))?.captureToken).toBe(one)
    await store.saveFeedback({ taskId: task.id, owner: one, feedback: 'f', at: 't' })
    expect(await store.findFeedback(task.id, other)).toBeUndefined()
  })

  test('a cursor is valid only unchanged and only for its owner and list', async () => {
    await using store = await open()
    for (const owner of [alice, alice, bob, bob]) await created(store, { owner })
    const { nextCursor: cursor = '' } = await store.listTasks({ owner: alice, limit: 1 })
    expect((await store.listTasks({ owner: alice, limit: 1, cursor })).items).toHaveLength(1)
    const bytes = Buffer.from(cursor, 'base64url')
    const flipped = [0, 13, bytes.length - 1].map((at) => {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      return changed.toString('base64url')
    })
    const forged = [...flipped, cursor.slice(0, -4), `${cursor}AAAA`, '', '1', '{"$gt":""}', 'A'.repeat(5000)]
    const refused = { error: 'InvalidParams' }
    for (const one of forged)
      await expect(store.listTasks({ owner: alice, limit: 1, cursor: one })).rejects.toMatchObject(refused)
    await expect(store.listTasks({ owner: bob, limit: 1, cursor })).rejects.toMatchObject(refused)
    await expect(store.listContexts({ owner: alice, limit: 1, cursor })).rejects.toMatchObject(refused)
  })
}
