import { describe, expect, test } from 'vitest'
import { absent, atMost, below, type DocumentDatabase, declareCollection, present } from './documents.ts'

/** The table that the SQLite adapter needs for the sample collection. */
export const sampleTable = `
  CREATE TABLE samples (
    seq INTEGER PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, colour TEXT, slot TEXT, version INTEGER NOT NULL,
    until INTEGER, done INTEGER, body TEXT NOT NULL, UNIQUE (owner, id)
  ) STRICT;
  CREATE INDEX samples_of_colour ON samples (colour);
  CREATE INDEX samples_until ON samples (until) WHERE until IS NOT NULL;
  CREATE UNIQUE INDEX samples_slot ON samples (slot) WHERE slot IS NOT NULL;`

const samples = declareCollection({
  name: 'samples',
  fields: {
    owner: 'key',
    id: 'key',
    colour: 'key?',
    slot: 'key?',
    version: 'integer',
    until: 'integer?',
    done: 'flag',
    body: 'text',
  },
  key: ['owner', 'id'],
  kept: ['done'],
  sequence: true,
  unique: { fields: ['slot'], version: 'version' },
  expires: { field: 'until', index: 'expired' },
  indexes: {
    of_colour: { equals: ['colour'], order: 'sequence', sqlite: 'samples_of_colour' },
    expired: { order: 'until', sqlite: 'samples_until' },
  },
  mongodb: { sequence: 'made', claims: { collection: 'sample_claims', prefixes: { slot: 'slot' } } },
})

const sample = (
  id: string,
  fields: { colour?: string; slot?: string; until?: number; body?: string } = {},
) => ({
  owner: 'alice',
  id,
  version: 0,
  body: `body of ${id}`,
  ...fields,
})

/** Tests the guarantees of every document kernel adapter. `open` returns a new, empty database. */
export function documentCases(name: string, open: () => Promise<DocumentDatabase>): void {
  describe(`documents in ${name}`, () => {
    const collection = async () => (await open()).collection(samples)

    test('insert writes a document once, and get returns it only for the whole key', async () => {
      const all = await collection()
      expect(await all.insert(sample('a', { until: 5 }))).toBe('written')
      expect(await all.insert(sample('a', { body: 'other' }))).toBe('refused')
      expect(await all.get({ owner: 'alice', id: 'a' })).toMatchObject({
        body: 'body of a',
        version: 0,
        until: 5,
      })
      expect(await all.get({ owner: 'bob', id: 'a' })).toBeUndefined()
      expect(await all.get({ owner: 'alice', id: 'a' }, { version: 1 })).toBeUndefined()
    })

    test('only one of 20 concurrent inserts of a key is written', async () => {
      const all = await collection()
      const inserts = Array.from({ length: 20 }, (_, n) => all.insert(sample('a', { body: String(n) })))
      expect((await Promise.all(inserts)).filter((one) => one === 'written')).toHaveLength(1)
    })

    test('insert replaces a document only if it meets `over`', async () => {
      const all = await collection()
      await all.insert(sample('a', { until: 10 }))
      expect(await all.insert(sample('a', { until: 30 }), { over: { until: atMost(9) } })).toBe('refused')
      expect(await all.insert(sample('a', { until: 30 }), { over: { until: atMost(10) } })).toBe('written')
      expect(await all.get({ owner: 'alice', id: 'a' })).toMatchObject({ until: 30 })
    })

    test('put inserts or replaces a document, keeps declared fields and assigns a new position', async () => {
      const all = await collection()
      for (const id of ['a', 'b']) await all.put(sample(id, { colour: 'red' }))
      await all.put(sample('a', { colour: 'red', body: 'new' }))
      const found = await all.find('of_colour', { colour: 'red' })
      expect(found.map(({ body }) => body)).toEqual(['body of b', 'new'])
    })

    test('a quota rejects new documents but never replacements', async () => {
      const all = await collection()
      const quota = { index: 'of_colour' as const, equals: { colour: 'red' }, max: 2 }
      for (const id of ['a', 'b']) expect(await all.put(sample(id, { colour: 'red' }), quota)).toBe('written')
      expect(await all.put(sample('c', { colour: 'red' }), quota)).toBe('refused')
      expect(await all.put(sample('a', { colour: 'red', body: 'new' }), quota)).toBe('written')
      expect(await all.count('of_colour', { colour: 'red' })).toBe(2)
    })

    test('only one of 10 concurrent updates that compare the version is written', async () => {
      const all = await collection()
      await all.insert(sample('a'))
      const key = { owner: 'alice', id: 'a' }
      const updates = Array.from({ length: 10 }, (_, n) =>
        all.update(key, { version: 1, body: String(n) }, { version: 0 }),
      )
      expect((await Promise.all(updates)).filter((one) => one === 'written')).toHaveLength(1)
      expect(await all.update({ owner: 'alice', id: 'missing' }, { version: 1 })).toBe('refused')
    })

    test('update removes fields given as undefined and checks comparisons and `any` conditions', async () => {
      const all = await collection()
      const key = { owner: 'alice', id: 'a' }
      await all.insert(sample('a', { colour: 'red', until: 5 }))
      expect(await all.update(key, { until: undefined, done: true }, { done: absent })).toBe('written')
      expect(await all.update(key, { version: 1 }, { done: absent })).toBe('refused')
      expect(await all.update(key, { version: 1 }, { any: [{ done: absent }, { until: atMost(9) }] })).toBe(
        'refused',
      )
      const one = { any: [{ done: present }, { until: atMost(9) }], version: below(1) }
      expect(await all.update(key, { version: 1 }, one)).toBe('written')
      const found = await all.get(key)
      expect(found).toMatchObject({ done: true, version: 1 })
      expect(found?.until).toBeUndefined()
    })

    test('inserts and updates can take a unique value only once until its document is removed', async () => {
      const all = await collection()
      const inserts = ['a', 'b', 'c'].map((id) => all.insert(sample(id, { slot: 's' })))
      const written = await Promise.all(inserts)
      expect(written.filter((one) => one === 'written')).toHaveLength(1)
      expect(written).toContainEqual({ taken: 'slot' })
      const holder = ['a', 'b', 'c'][written.indexOf('written')] ?? ''
      await all.insert(sample('d'))
      const d = { owner: 'alice', id: 'd' }
      expect(await all.update(d, { slot: 's', version: 1 }, { version: 0 })).toEqual({ taken: 'slot' })
      expect(await all.remove({ owner: 'alice', id: holder }, { version: 1 })).toBeUndefined()
      expect(await all.remove({ owner: 'alice', id: holder })).toMatchObject({ body: `body of ${holder}` })
      expect(await all.update(d, { slot: 's', version: 1 }, { version: 0 })).toBe('written')
    })

    test('a page is in order of insertion and ends with the position of the next page', async () => {
      const all = await collection()
      for (const id of ['a', 'b', 'c']) await all.insert(sample(id, { colour: 'red' }))
      await all.insert(sample('other', { colour: 'blue' }))
      const first = await all.page('of_colour', { colour: 'red' }, { limit: 2 })
      expect(first.items.map(({ body }) => body)).toEqual(['body of a', 'body of b'])
      const rest = await all.page('of_colour', { colour: 'red' }, { limit: 2, after: first.next ?? 0 })
      expect(rest.items.map(({ body }) => body)).toEqual(['body of c'])
      expect(rest.next).toBeUndefined()
    })

    test('an ordered index supports bounds, limits and removals, and omits documents without its field', async () => {
      const all = await collection()
      for (const until of [30, 10, 20]) await all.insert(sample(`u${until}`, { until }))
      await all.insert(sample('never'))
      const due = await all.find('expired', {}, { atMost: 20, limit: 5 })
      expect(due.map(({ until }) => until)).toEqual([10, 20])
      expect(await all.removeMany('expired', {}, { atMost: 99, limit: 2 })).toBe(2)
      expect(await all.get({ owner: 'alice', id: 'u30' })).toBeDefined()
      expect(await all.removeMany('expired', {}, { before: 99 })).toBe(1)
      expect(await all.get({ owner: 'alice', id: 'never' })).toBeDefined()
    })

    test('an external operator object is rejected both as a value and in a key', async () => {
      const all = await collection()
      const operator: unknown = { $gt: '' }
      await expect((async () => all.get({ owner: 'alice', id: operator as string }))()).rejects.toThrow(
        TypeError,
      )
      const find = async () => all.find('of_colour', { colour: operator as string })
      await expect(find()).rejects.toThrow(TypeError)
    })
  })
}
