import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach } from 'vitest'
import { gatewayMigrations } from '../../../store/sqlite/schema.ts'
import { routingStoreCases } from '../routing-store.cases.ts'
import { SqliteRoutingStore } from './routing.ts'

const close: (() => Promise<unknown>)[] = []
afterEach(async () => {
  while (close.length > 0) await close.pop()?.()
})

routingStoreCases('SQLite', async (bounds) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-routing-store-'))
  const database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  close.push(
    () => rm(folder, { recursive: true, force: true }),
    async () => database[Symbol.asyncDispose](),
  )
  return new SqliteRoutingStore(database, bounds)
})
