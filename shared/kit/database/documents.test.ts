import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { documentCases, sampleTable } from './documents.cases.ts'
import { memoryDocuments } from './memory/documents.ts'
import { connectMongodb } from './mongodb/database.ts'
import { mongodbDocuments } from './mongodb/documents.ts'
import { openDatabase } from './sqlite/database.ts'
import { sqliteDocuments } from './sqlite/documents.ts'

let opened = new AsyncDisposableStack()
afterEach(async () => {
  await opened.disposeAsync()
  opened = new AsyncDisposableStack()
})

documentCases('memory', async () => memoryDocuments())

documentCases('SQLite', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-documents-'))
  opened.defer(() => rm(folder, { recursive: true }))
  return sqliteDocuments(opened.use(await openDatabase(path.join(folder, 'a.db'), [sampleTable])))
})

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  documentCases('MongoDB', async () => {
    const { db } = opened.use(await connectMongodb({ url: server.newUrl() }))
    return mongodbDocuments(db, 'scope')
  })
})
