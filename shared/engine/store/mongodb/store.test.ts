import { randomUUID } from 'node:crypto'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, beforeAll, describe } from 'vitest'
import { storeCases } from '../store.cases.ts'
import { claimCases, openPushConfigCases, webhookStoreCases } from '../store-webhooks.cases.ts'
import { webhookModelCases } from '../store-webhooks-model.cases.ts'
import { openMongodbStore } from './store.ts'

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  let url = ''
  beforeAll(async () => {
    server = await startMongodb()
    url = server.newUrl()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  // One database serves many agents, so the store of a new agent is empty.
  const open = (options = {}) =>
    openMongodbStore({ url, agentId: randomUUID(), largePartBytes: 1000, ...options })
  const webhooks = async (options = {}) => {
    const store = await open(options)
    return Object.assign(store.webhooks, { [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() })
  }

  storeCases('MongoDB', open)
  webhookStoreCases('MongoDB', webhooks)
  openPushConfigCases(webhooks)
  claimCases(webhooks)
  const two = async () => {
    const agentId = randomUUID()
    return [await webhooks({ agentId }), await webhooks({ agentId })] as const
  }
  webhookModelCases(two, { steps: 300 })
})
