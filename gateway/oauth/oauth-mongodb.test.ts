import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { openGatewayMongodb } from '../store/mongodb/database.ts'
import { mongodbOAuthStore, oauthIndexes } from './oauth-mongodb.ts'
import { oauthStoreCases } from './oauth-store.cases.ts'

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  const open: AsyncDisposable[] = []
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterEach(async () => {
    while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  oauthStoreCases('MongoDB', async () => {
    const database = await openGatewayMongodb({ url: server.newUrl(), indexes: oauthIndexes })
    open.push(database)
    return mongodbOAuthStore(database)
  })
})
