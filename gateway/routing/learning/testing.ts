import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import { SqliteRoutingStore } from '../store/sqlite/routing.ts'

/** An empty routing store in a temporary folder. */
export async function temporaryStore(): Promise<{ store: SqliteRoutingStore } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-learning-'))
  const database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  return {
    store: new SqliteRoutingStore(database),
    [Symbol.asyncDispose]: async () => {
      await database[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
