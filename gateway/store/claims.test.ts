import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { claimsCases } from './claims.cases.ts'
import { claimsIn } from './claims.ts'
import { openGatewayMongodb } from './mongodb/database.ts'
import { gatewayMigrations } from './sqlite/schema.ts'

const close: (() => Promise<unknown>)[] = []
afterEach(async () => {
  while (close.length > 0) await close.pop()?.()
})

claimsCases('SQLite', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-claims-'))
  const database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  close.push(
    () => rm(folder, { recursive: true, force: true }),
    async () => database[Symbol.asyncDispose](),
  )
  const claims = claimsIn(sqliteDocuments(database), 'gateway_signatures')
  const count = 'SELECT count(*) AS n FROM gateway_signatures'
  return {
    one: claims,
    other: claims,
    count: () => database.read(() => database.statement(count).get()?.['n'] as number),
  }
})

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  claimsCases('MongoDB', async () => {
    const url = server.newUrl()
    const opened = await Promise.all([0, 1].map(() => openGatewayMongodb({ url })))
    for (const database of opened) close.push(async () => database[Symbol.asyncDispose]())
    const [one, other] = opened.map((database) =>
      database.guard(claimsIn(database.documents, 'gateway_signatures')),
    )
    if (one === undefined || other === undefined) throw new Error('not opened')
    const count = async () => (await opened[0]?.collection('gateway_signatures').countDocuments()) ?? -1
    return { one, other, count }
  })
})
