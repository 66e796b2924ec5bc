import { randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { delegatedOwner } from '@parley/kit/auth/caller'
import { chunksOf, LazyPart, toLazyJson } from '@parley/wire/codecs/lazy-part'
import { partOut, taskOut } from '@parley/wire/codecs/parley/task'
import { ParleyError } from '@parley/wire/errors'
import type { Part } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import { expect, test } from 'vitest'
import {
  alice,
  artifactOf,
  bob,
  created,
  createdIn,
  messageOf,
  next,
  sampleRecord,
} from './sample-record.cases.ts'
import type { OpenStore } from './store.cases.ts'
import type { Store, TaskRecord } from './store.ts'

const letters = (length: number) => 'abcdefghij'.repeat(Math.ceil(length / 10)).slice(0, length)

const awkward: [string, Part][] = [
  ['a text with NUL, quotes and a lone surrogate', { kind: 'text', text: '\u0000 "\\ \ud800 \u2028' }],
  [
    'a data part with the key __proto__',
    { kind: 'data', data: JSON.parse('{"__proto__": {"admin": true}}') },
  ],
  ['huge, small and negative zero numbers', { kind: 'data', data: { numbers: [1e308, 5e-324, 0, 2 ** 53] } }],
  ['metadata', { kind: 'text', text: 'x', metadata: { deep: [{ er: null }] } }],
  ['a large text', { kind: 'text', text: letters(5000) }],
  ['a large text of lone surrogates', { kind: 'text', text: '\udc00'.repeat(2000) }],
  ['a large file', { kind: 'file', file: { name: 'a.bin', mimeType: 'x/y', bytes: letters(8000) } }],
  ['a large data object', { kind: 'data', data: { rows: letters(3000).split('') } }],
  ['large metadata', { kind: 'text', text: 'x', metadata: { note: letters(3000) } }],
]

export function taskCases(open: OpenStore): void {
  test('an outline contains no large parts, which are read only during serialization', async () => {
    await using store = await open()
    const task = { id: randomUUID(), contextId: randomUUID() }
    const parts = awkward.map(([, part]) => part)
    const record = await created(store, {
      ...task,
      history: [messageOf(parts, task)],
      artifacts: [artifactOf(...parts)],
    })
    const outline = await store.outlineTask(record.id, alice, () => {})
    const outlines = await store.outlineTasks({ owner: alice, limit: 10 }, () => {})
    for (const one of [outline, outlines.items[0]]) {
      if (one === undefined) throw new Error('no outline')
      expect(one.task.history[0]?.parts.filter((part) => part instanceof LazyPart)).toHaveLength(5)
      expect(one.bytes).toBeGreaterThan(2 * (5000 + 8000 + 3000 * 4))
      const json = await text(chunksOf(toLazyJson(taskOut(one.task), partOut)))
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(taskOut(record))))
    }
    expect(await store.outlineTask(record.id, bob, () => {})).toBeUndefined()
  })

  test('a large record is not read if the callback that receives its size throws', async () => {
    await using store = await open()
    const task = { id: randomUUID(), contextId: randomUUID() }
    const many = Array.from({ length: 200 }, (): Part => ({ kind: 'text', text: letters(900) }))
    const { id } = await created(store, {
      ...task,
      history: [messageOf([...many, { kind: 'text', text: letters(50_000) }], task)],
    })
    const sizes: number[] = []
    const refuse = (bytes: number) => {
      sizes.push(bytes)
      throw new ParleyError('TooManyRequests')
    }
    await expect(store.findTask(id, alice, refuse)).rejects.toMatchObject({ status: 429 })
    await expect(store.outlineTask(id, alice, refuse)).rejects.toMatchObject({ status: 429 })
    await expect(store.outlineTasks({ owner: alice, limit: 10 }, refuse)).rejects.toMatchObject({
      status: 429,
    })
    expect(sizes[0]).toBeGreaterThan(200 * 900 + 50_000)
    expect(sizes).toHaveLength(3)
  })

  test('is returned unchanged to its owner and to the engine', async () => {
    await using store = await open()
    const record = await created(store, {
      referenceTaskIds: ['a'],
      acceptedOutputModes: ['text/plain'],
      dueAt: 7,
    })
    expect(await store.findTask(record.id, alice)).toEqual(record)
    expect(await store.loadTask(record.id)).toEqual(record)
  })

  test('is not found by another owner or under another id', async () => {
    await using store = await open()
    const record = await created(store)
    expect(await store.findTask(record.id, bob)).toBeUndefined()
    expect(await store.findTask('no such id', alice)).toBeUndefined()
    expect(await store.loadTask('no such id')).toBeUndefined()
  })

  test.each([alice, delegatedOwner(alice, bob), delegatedOwner('a'.repeat(512), 'b'.repeat(512))])(
    'has an owner, which is found by the id of the task alone (%#)',
    async (owner) => {
      await using store = await open()
      const { id } = await created(store, { owner })
      expect(await store.ownerOf(id)).toBe(owner)
      expect((await store.findTask(id, owner))?.owner).toBe(owner)
      expect(await store.ownerOf('no such id')).toBeUndefined()
    },
  )

  test('is not created if any owner already has a task with its id', async () => {
    await using store = await open()
    const record = await created(store)
    const theirs = sampleRecord({ id: record.id, owner: bob })
    expect(await store.createTask(theirs)).toBe(false)
    expect(await store.findContext(theirs.contextId, bob)).toBeUndefined()
    expect(await store.loadTask(record.id)).toEqual(record)
  })

  test('is created by only one of two concurrent calls with the same id', async () => {
    await using store = await open()
    const record = sampleRecord()
    const outcomes = await Promise.all([
      store.createTask(record),
      store.createTask({ ...record, owner: bob }),
    ])
    expect(outcomes.filter(Boolean)).toHaveLength(1)
  })

  test.each([
    ['', false],
    [' that does not wait for the disk', true],
  ])('is replaced by a commit%s whose version is current', async (_title, soon) => {
    await using store = await open()
    const record = await created(store)
    const working = next(record, 'working', { lease: { holder: 'me', until: 5 }, starts: 1 })
    expect(await store.commitTask(working, soon)).toBe(true)
    expect(await store.loadTask(record.id)).toEqual(working)
  })

  test.each([
    ['of an older version', -1],
    ['of the same version again', 0],
    ['of a version ahead', 2],
  ])('is not changed by a commit %s, which returns false', async (_title, offset) => {
    await using store = await open()
    const record = await createdIn(store, 'working')
    const large: Part = { kind: 'text', text: letters(5000) }
    const late = {
      ...next(record, 'completed', { artifacts: [artifactOf(large)] }),
      version: record.version + offset,
    }
    expect(await store.commitTask(late)).toBe(false)
    expect(await store.loadTask(record.id)).toEqual(record)
  })

  test('cannot be committed after it was cleared, even if a new task has its id and version', async () => {
    await using store = await open()
    const cleared = await createdIn(store, 'canceled')
    expect(await store.clearContext(cleared.contextId, alice)).toBe('cleared')
    const createdAt = timestamp()
    const second = await createdIn(store, 'working', { id: cleared.id, createdAt })
    expect(await store.commitTask(next(cleared, 'failed'))).toBe(false)
    const lease = { holder: 'me', until: Date.now() + 1000 }
    expect(await store.commitTask(next(cleared, 'working', { lease }))).toBe(false)
    expect(await store.loadTask(second.id)).toEqual(second)
  })

  test('cannot be committed if it does not exist', async () => {
    await using store = await open()
    expect(await store.commitTask(next(sampleRecord()))).toBe(false)
  })

  test('is changed by exactly one of many concurrent commits', async () => {
    await using store = await open()
    const record = await created(store)
    const rivals = Array.from({ length: 20 }, (_, starts) => next(record, 'working', { starts }))
    const outcomes = await Promise.all(rivals.map((rival) => store.commitTask(rival)))
    expect(outcomes.filter(Boolean)).toHaveLength(1)
    expect(await store.loadTask(record.id)).toEqual(rivals[outcomes.indexOf(true)])
  })

  test('is not affected by changes to the record after the call', async () => {
    await using store = await open()
    const record = sampleRecord()
    const before = structuredClone(record)
    const done = store.createTask(record)
    record.history.pop()
    await done
    expect(await store.loadTask(record.id)).toEqual(before)
  })

  test('is rejected if it cannot be encoded, while concurrent writes succeed', async () => {
    await using store = await open()
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    const broken = sampleRecord({
      history: [messageOf([{ kind: 'data', data: cycle as never }], sampleRecord())],
    })
    const sound = sampleRecord()
    const outcomes = await Promise.allSettled([store.createTask(broken), store.createTask(sound)])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    expect(await store.loadTask(sound.id)).toEqual(sound)
  })

  test.each(awkward)('%s is returned unchanged wherever it occurs in a task', async (_title, part) => {
    await using store = await open()
    const record = sampleRecord()
    const message = messageOf([part, { kind: 'text', text: 'small' }, part], record)
    const at = record.createdAt
    const status = { state: 'input-required' as const, timestamp: at, message }
    const full: TaskRecordLike = {
      ...record,
      status,
      history: [message],
      artifacts: [artifactOf(part), artifactOf({ kind: 'text', text: 'small' }, part)],
      events: [{ eventId: 'e', sequence: 1, timestamp: at, kind: 'status-update', status, final: false }],
    }
    await store.createTask(full)
    const found = await store.loadTask(record.id)
    expect(found).toEqual(full)
    expect(JSON.stringify(found?.history)).toBe(JSON.stringify(full.history))
    // Commit twice, once with the record that was read and once with the original.
    expect(await store.commitTask(next(found ?? full, 'working', { status }))).toBe(true)
    expect(await store.commitTask({ ...full, version: 2 })).toBe(true)
    expect(await store.loadTask(record.id)).toEqual({ ...full, version: 2 })
  })

  test('is stored with the changes to a large part that was modified in place', async () => {
    await using store = await open()
    const part = { kind: 'text' as const, text: letters(5000) }
    const record = sampleRecord({ artifacts: [artifactOf(part)] })
    await store.createTask(record)
    part.text = letters(6000)
    await store.commitTask(next(record))
    expect((await store.loadTask(record.id))?.artifacts[0]?.parts).toEqual([
      { kind: 'text', text: letters(6000) },
    ])
  })

  test('is returned with an output of 40 MB', async () => {
    await using store = await open()
    const bytes = letters(40_000_000)
    const record = await created(store)
    const artifacts = [artifactOf({ kind: 'file', file: { name: 'big.bin', bytes } })]
    await store.commitTask(next(record, 'completed', { artifacts }))
    const found = await store.findTask(record.id, alice)
    expect(found?.artifacts[0]?.parts[0]).toMatchObject({ kind: 'file', file: { name: 'big.bin' } })
    expect(found?.artifacts).toEqual(artifacts)
  })

  test('renewLeases extends only leases of the holder, returns the other tasks, and keeps the version', async () => {
    await using store = await open()
    const mine = await created(store, { lease: { holder: 'me', until: 100 } })
    const other = await created(store, { lease: { holder: 'other', until: 100 } })
    const free = await created(store)
    const lost = await store.renewLeases('me', [mine.id, other.id, free.id, 'no such id'], 200)
    expect(lost).toEqual([other.id, free.id, 'no such id'])
    expect(await store.loadTask(mine.id)).toEqual({ ...mine, lease: { holder: 'me', until: 200 } })
    expect(await store.loadTask(other.id)).toEqual(other)
    expect(await store.loadTask(free.id)).toEqual(free)
  })

  test('a commit by the same holder never shortens the lease, while any other commit replaces it', async () => {
    await using store = await open()
    const lease = { holder: 'me', until: 100 }
    const record = await created(store, { lease })
    await store.renewLeases('me', [record.id], 200)
    await store.commitTask(next(record))
    expect((await store.loadTask(record.id))?.lease).toEqual({ holder: 'me', until: 200 })
    await store.commitTask({ ...record, version: 2, lease: { holder: 'other', until: 50 } })
    expect((await store.loadTask(record.id))?.lease).toEqual({ holder: 'other', until: 50 })
    const { lease: _lease, ...free } = { ...record, version: 3 }
    await store.commitTask(free)
    expect(await store.loadTask(record.id)).not.toHaveProperty('lease')
  })

  test.each([
    [
      'committed again',
      async (store: Store, record: TaskRecord) =>
        store.commitTask({ ...record, version: record.version + 1 }),
    ],
    [
      'cleared with its context',
      (store: Store, record: TaskRecord) => store.clearContext(record.contextId, alice),
    ],
    ['removed by retention', (store: Store) => store.removeEnded('9999', 10)],
  ])('an ended task that has been read before is read as stored after it was %s', async (_how, change) => {
    await using store = await open()
    const record = await createdIn(store, 'completed')
    const read = () => store.outlineTask(record.id, alice, () => {})
    const before = await read()
    expect(before).toEqual(await read())
    await change(store, record)
    expect((await read())?.task).toEqual(await store.loadTask(record.id))
    expect((await read())?.task.version).not.toBe(before?.task.version)
  })

  test('an ended task that its owner has read is not found by another owner', async () => {
    await using store = await open()
    const { id } = await createdIn(store, 'completed')
    expect(await store.outlineTask(id, alice, () => {})).toBeDefined()
    expect(await store.outlineTask(id, bob, () => {})).toBeUndefined()
  })
}

type TaskRecordLike = ReturnType<typeof sampleRecord>
