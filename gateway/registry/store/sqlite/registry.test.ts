import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach } from 'vitest'
import { gatewayMigrations } from '../../../store/sqlite/schema.ts'
import { registryStoreCases } from '../registry-store.cases.ts'
import { SqliteRegistryStore } from './registry.ts'

const close: (() => Promise<unknown>)[] = []
afterEach(async () => {
  while (close.length > 0) await close.pop()?.()
})

registryStoreCases('SQLite', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-registry-store-'))
  const database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  close.push(
    () => rm(folder, { recursive: true, force: true }),
    async () => database[Symbol.asyncDispose](),
  )
  return new SqliteRegistryStore(database)
})
