import { randomBytes } from 'node:crypto'
import { Cursors } from '@parley/kit/database/cursor'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { idempotencyKeys } from '../idempotency-keys.ts'
import { LargeParts } from '../large-parts.ts'
import { paymentStore } from '../payments.ts'
import { webhookStore } from '../push-configs.ts'
import { signatures } from '../signatures.ts'
import type { Store } from '../store.ts'
import { usageStore } from '../usage-days.ts'
import { contextMethods } from './contexts.ts'
import { type MemoryContext, taskMethods } from './tasks.ts'

export interface MemoryStoreOptions {
  /** Parts larger than this are stored separately from the task. Default 256 KiB. */
  largePartBytes?: number
  /** Returns milliseconds since 1970. Default: the system clock. */
  clock?: () => number
}

/** A fast store for tests and development. Its content is lost when the process ends. Queries read every task. */
export function openMemoryStore(options: MemoryStoreOptions = {}): Store {
  const now = options.clock ?? Date.now
  const store: MemoryContext = {
    tasks: new Map(),
    lastSequence: 0,
    contexts: new Map(),
    ended: new Map(),
    largeParts: new LargeParts(options.largePartBytes ?? 256 * 1024),
    cursors: new Cursors(randomBytes(32)),
  }
  const documents = memoryDocuments()
  const { claimIdempotencyKey, removeExpiredKeys } = idempotencyKeys(documents, now)
  const contexts = contextMethods(store, documents)
  return {
    exclusive: true,
    ping: async () => {},
    ...taskMethods(store),
    ...contexts,
    claimIdempotencyKey,
    removeEnded: async (before, limit) => {
      await removeExpiredKeys(limit)
      return contexts.removeEnded(before, limit)
    },
    ...signatures(documents, now),
    webhooks: webhookStore(documents, now),
    payments: paymentStore(documents),
    usage: usageStore(documents),
    [Symbol.asyncDispose]: async () => {},
  }
}
