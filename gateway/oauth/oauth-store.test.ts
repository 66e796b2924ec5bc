import path from 'node:path'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { openGatewayMongodb } from '../store/mongodb/database.ts'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import { oauthStoreCases } from './oauth-store.cases.ts'
import { encryptedStore, temporaryFolder } from './testing.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
})

oauthStoreCases('memory', async () => encryptedStore(memoryDocuments()))

oauthStoreCases('SQLite', async () => {
  const folder = await temporaryFolder()
  const database = await openDatabase(path.join(folder.dir, 'gateway.db'), gatewayMigrations)
  open.push(folder, database)
  return encryptedStore(sqliteDocuments(database))
})

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  oauthStoreCases('MongoDB', async () => {
    const database = await openGatewayMongodb({ url: server.newUrl() })
    open.push(database)
    return database.guard(await encryptedStore(database.documents))
  })
})
