import { type PaymentState, paymentStates } from '@parley/engine/store/payment-store'
import { wireForms } from '@parley/wire/codecs/wire-form'
import type { DeprecationMark } from '@parley/wire/model/deprecation'
import { z } from 'zod'

/** States that have different names on the wire and in the store. Stored rows keep the old name to avoid a migration. */
const wireNames: Readonly<Record<string, string>> = { orphaned: 'payment-orphaned' }

/** Deprecated names that the ledger's filter still accepts. */
export const deprecatedStates: Readonly<Record<string, DeprecationMark>> = {
  orphaned: { since: '2026-11-22', use: 'payment-orphaned' },
}

export function stateOut(state: string): string {
  return wireNames[state] ?? state
}

const stateOf = new Map<string, PaymentState>([
  ...paymentStates.map((state) => [state, state] as const),
  ...paymentStates.map((state) => [stateOut(state), state] as const),
])

/** The current names and the deprecated ones. */
const stateName = z.string().register(wireForms, { schema: { type: 'string', enum: [...stateOf.keys()] } })

export const stateIn = stateName.transform((name, context): PaymentState => {
  const state = stateOf.get(name)
  if (state !== undefined) return state
  context.addIssue({ code: 'custom', message: `must be one of ${paymentStates.map(stateOut).join(', ')}` })
  return z.NEVER
})
