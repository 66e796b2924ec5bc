import { describe } from 'vitest'
import type { Store } from './store.ts'
import { allTaskListCases } from './store-all-tasks.cases.ts'
import { contextCases } from './store-contexts.cases.ts'
import { taskListCases } from './store-lists.cases.ts'
import { paymentCases } from './store-payments.cases.ts'
import { signatureCases } from './store-signatures.cases.ts'
import { statusListCases } from './store-status-lists.cases.ts'
import { taskCases } from './store-tasks.cases.ts'
import { transferOfferCases } from './store-transfer-offers.cases.ts'
import { usageCases } from './store-usage.cases.ts'

/**
 * Tests the guarantees of every adapter. `open` returns a new, empty store with the given clock that stores parts
 * over 1,000 characters separately.
 */
export type OpenStore = (options?: { clock?: () => number }) => Promise<Store>

export function storeCases(name: string, open: OpenStore): void {
  describe(`${name} as a store`, () => {
    describe('a task', () => {
      taskCases(open)
    })
    describe('lists of tasks', () => {
      taskListCases(open)
      statusListCases(open)
      allTaskListCases(open)
    })
    describe('contexts, idempotency keys and feedback', () => {
      contextCases(open)
    })
    describe('used signatures', () => {
      signatureCases(open)
    })
    describe('a payment', () => {
      paymentCases(open)
    })
    describe('a direct transfer', () => {
      transferOfferCases(open)
    })
    describe('usage', () => {
      usageCases(open)
    })
  })
}
