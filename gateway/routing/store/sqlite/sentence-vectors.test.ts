import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { expect, onTestFinished, test } from 'vitest'
import { gatewayMigrations } from '../../../store/sqlite/schema.ts'
import { SqliteRoutingStore } from './routing.ts'
import { SqliteSentenceVectors } from './sentence-vectors.ts'

async function temporaryFile(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-vectors-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return path.join(folder, 'gateway.db')
}

test('beyond the maximum, the vectors that were used least recently are removed, up to the limit', async () => {
  await using database = await openDatabase(await temporaryFile(), gatewayMigrations)
  const vectors = new SqliteSentenceVectors(database, 2)
  for (const [at, key] of ['a', 'b', 'c', 'd', 'e'].entries())
    await vectors.save(new Map([[key, new Uint8Array(1)]]), at)
  await vectors.mark(['a'], { at: 9, before: 1 })
  const removeOld = () => database.write(() => vectors.removeOldNow(0, 2))
  expect([await removeOld(), await removeOld(), await removeOld()]).toEqual([2, 1, 0])
  expect([...(await vectors.find(['a', 'b', 'c', 'd', 'e'])).keys()]).toEqual(['a', 'e'])
})

test('a database of the version before sentence vectors is migrated and keeps its routes', async () => {
  const file = await temporaryFile()
  const before = gatewayMigrations.slice(
    0,
    gatewayMigrations.findIndex((sql) => sql.includes('CREATE TABLE sentence_vectors')),
  )
  const route = { owner: 'alice', kind: 'task', id: 't', agent: 'sky', at: 1 } as const
  {
    await using database = await openDatabase(file, before)
    await new SqliteRoutingStore(database).save([route])
  }
  await using database = await openDatabase(file, gatewayMigrations)
  const store = new SqliteRoutingStore(database)
  await store.saveSentenceVectors(new Map([['a', Uint8Array.of(7)]]), 1)
  expect([...((await store.sentenceVectors(['a'])).get('a') ?? [])]).toEqual([7])
  expect(await store.find('alice', 'task', 't')).toEqual(route)
})
