import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { makeLog } from '@parley/kit/process/log'
import { expect, test } from 'vitest'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import { Retention } from './retention.ts'
import { SqliteRoutingStore } from './sqlite/routing.ts'

test('a round removes all expired entries in batches', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-clean-'))
  await using database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  const store = new SqliteRoutingStore(database)
  const of = { owner: 'alice', kind: 'key' as const, agent: 'sky' }
  await store.save(Array.from({ length: 35 }, (_, number) => ({ ...of, id: String(number), at: 1 })))
  await store.save([{ ...of, id: 'young', at: Date.now() }])
  const keptMs = {
    routes: 60_000,
    claims: 0,
    keys: 60_000,
    decisions: 60_000,
    trainingExamples: 60_000,
    sentenceVectors: 60_000,
  }
  const vectors = Array.from({ length: 35 }, (_, number) => [`old ${number}`, new Uint8Array(1)] as const)
  await store.saveSentenceVectors(new Map(vectors), 1)
  await store.saveSentenceVectors(new Map([['young', new Uint8Array(1)]]), Date.now())
  const log = makeLog({ level: 'silent', name: 'test' })
  using cleaner = new Retention({ store, log, keptMs, batchSize: 10 })
  await cleaner.clean()
  expect(await store.find('alice', 'key', '34')).toBeUndefined()
  expect(await store.find('alice', 'key', 'young')).toBeDefined()
  const left = await store.sentenceVectors([...vectors.map(([key]) => key), 'young'])
  expect([...left.keys()]).toEqual(['young'])
  await rm(folder, { recursive: true, force: true })
})
