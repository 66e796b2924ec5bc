import { storeCases } from '../store.cases.ts'
import { badInputCases } from '../store-bad-input.cases.ts'
import { openPushConfigCases, webhookStoreCases } from '../store-webhooks.cases.ts'
import { openMemoryStore } from './store.ts'

const open = async (options = {}) => openMemoryStore({ largePartBytes: 1000, ...options })
const openWebhooks = async () => {
  const store = await open()
  return Object.assign(store.webhooks, { [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() })
}

storeCases('the in-memory store', open)
badInputCases(open)
webhookStoreCases('the in-memory store', openWebhooks)
openPushConfigCases(openWebhooks)
