import { randomUUID } from 'node:crypto'
import { openMongodbStore } from './mongodb.ts'
import { storeCases } from './store.cases.ts'
import { openPushConfigCases, webhookStoreCases } from './store-webhooks.cases.ts'

const url = process.env['MONGODB_URL'] ?? ''
const open = (options = {}) =>
  openMongodbStore({ url, agentId: randomUUID(), largePartBytes: 1000, ...options })

storeCases('MongoDB', open)
const webhooks = async () => {
  const store = await open()
  return Object.assign(store.webhooks, { [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() })
}
webhookStoreCases('MongoDB', webhooks)
openPushConfigCases(webhooks)
