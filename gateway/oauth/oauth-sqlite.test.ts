import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach } from 'vitest'
import { oauthMigrations, SqliteOAuthStore } from './oauth-sqlite.ts'
import { oauthStoreCases } from './oauth-store.cases.ts'
import { temporaryFolder } from './testing.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
})

oauthStoreCases('SQLite', async () => {
  const folder = await temporaryFolder()
  const database = await openDatabase(path.join(folder.dir, 'gateway.db'), oauthMigrations)
  open.push(folder, database)
  return new SqliteOAuthStore(database)
})
