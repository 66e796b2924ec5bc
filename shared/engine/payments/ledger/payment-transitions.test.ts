import { expect, test } from 'vitest'
import { type PaymentState, paymentStates } from '../../store/payment-store.ts'
import { samplePayment } from '../../store/store-payments.cases.ts'
import { type PaymentChange, transition } from './payment-transitions.ts'

const address = `0x${'1'.repeat(40)}`
const changes = {
  claim: {
    kind: 'claim',
    nonceKey: 'n',
    transfer: {
      signature: '0x',
      authorization: {
        from: address,
        to: address,
        value: '1',
        validAfter: '0',
        validBefore: '1',
        nonce: '0x',
      },
    },
  },
  release: { kind: 'release' },
  settle: { kind: 'settle' },
  'no-answer': { kind: 'no-answer', reason: 'timeout' },
  settled: { kind: 'settled', txHash: '0x1', payer: address },
  transferred: {
    kind: 'transferred',
    transferKey: 't',
    txHash: '0x1',
    payer: address,
    terms: { ...samplePayment().terms, atomic: '10001' },
    minedAt: 1000,
  },
  failed: { kind: 'failed', reason: 'x' },
  spend: { kind: 'spend', taskId: 't', purpose: 'p' },
  'take-over': { kind: 'take-over' },
  reclaim: { kind: 'reclaim', purpose: 'p' },
  unspend: { kind: 'unspend' },
  earn: { kind: 'earn' },
  orphan: { kind: 'orphan', reason: 'x' },
  refund: { kind: 'refund', txHash: undefined },
  expire: { kind: 'expire' },
  recheck: { kind: 'recheck' },
  'start-lookup': { kind: 'start-lookup' },
  notified: { kind: 'notified' },
} satisfies Record<PaymentChange['kind'], PaymentChange>

const allowed: Partial<Record<PaymentState, Partial<Record<PaymentChange['kind'], PaymentState>>>> = {
  open: { claim: 'claimed', expire: 'expired' },
  claimed: { settle: 'settling', release: 'open', failed: 'failed' },
  settling: { 'no-answer': 'unknown', settled: 'settled', failed: 'failed' },
  unknown: { 'no-answer': 'unknown', settled: 'settled', failed: 'failed', 'start-lookup': 'unknown' },
  settled: { spend: 'spent', orphan: 'orphaned' },
  spent: { recheck: 'spent', 'take-over': 'spent', unspend: 'settled', earn: 'earned', orphan: 'orphaned' },
  orphaned: { refund: 'refunded', earn: 'earned' },
  failed: { notified: 'failed' },
}
const at = { timestamp: 't', now: 1000 }

for (const state of paymentStates) {
  for (const change of Object.values(changes)) {
    const to = allowed[state]?.[change.kind]
    test(`${state} + ${change.kind}: ${to ?? 'refused'}`, () => {
      const before = samplePayment({ state })
      const copy = structuredClone(before)
      expect(transition(before, change, at)?.state).toBe(to)
      expect(before).toEqual(copy)
    })
  }
}

test('spends a payment that was claimed for a task on that task when it settles', () => {
  const settling = samplePayment({ state: 'settling', taskId: 't', purpose: 'p' })
  expect(transition(settling, changes.settled, at)).toMatchObject({
    state: 'spent',
    txHash: '0x1',
    taskId: 't',
  })
})

test('a transfer that was mined in time pays an open, claimed or expired session, and no other payment', () => {
  const session = { kind: 'session' as const, expiresAt: 1000 }
  for (const state of paymentStates) {
    const next = transition(samplePayment({ ...session, state, nonceKey: 'n' }), changes.transferred, at)
    const isPayable = ['open', 'claimed', 'expired'].includes(state)
    expect([state, next?.state]).toEqual([state, isPayable ? 'settled' : undefined])
  }
  const claimed = samplePayment({ ...session, state: 'claimed', nonceKey: 'n' })
  const { transfer, ...paid } = transition(claimed, changes.transferred, at) ?? claimed
  expect(transfer).toBeUndefined()
  expect(paid).toMatchObject({ nonceKey: 't', txHash: '0x1', payer: address, terms: { atomic: '10001' } })
  const late = { ...changes.transferred, minedAt: 1001 }
  expect(transition(samplePayment({ ...session, state: 'open' }), late, at)).toBeUndefined()
})

test('a failed or orphaned payment releases its purpose and keeps its nonce', () => {
  for (const [state, change] of [
    ['settling', changes.failed],
    ['spent', changes.orphan],
  ] as const) {
    const next = transition(samplePayment({ state, nonceKey: 'n', purpose: 'p', taskId: 't' }), change, at)
    expect(next).toMatchObject({ nonceKey: 'n', taskId: 't' })
    expect(next?.purpose).toBeUndefined()
  }
})

test('only a payment that was orphaned because of a missing task can be reclaimed', () => {
  const orphaned = (reason: string) => samplePayment({ state: 'orphaned', reason, taskId: 't' })
  const next = transition(orphaned('no_task'), changes.reclaim, at)
  expect(next).toMatchObject({ state: 'spent', taskId: 't', purpose: 'p' })
  expect(next?.reason).toBeUndefined()
  for (const reason of ['task_failed', 'task_canceled', 'unspent'])
    expect(transition(orphaned(reason), changes.reclaim, at)).toBeUndefined()
})

test('records a refund once, and allows its transaction to be added once later', () => {
  const refund = (txHash?: string) => ({ kind: 'refund', txHash }) as const
  const recorded = transition(samplePayment({ state: 'orphaned' }), refund(), at)
  expect(recorded?.state).toBe('refunded')
  if (recorded === undefined) throw new Error('not recorded')
  expect(transition(recorded, refund(), at)).toBeUndefined()
  const named = transition(recorded, refund('0x1'), at)
  expect(named).toMatchObject({ state: 'refunded', refundTxHash: '0x1' })
  for (const again of [refund(), refund('0x1'), refund('0x2')])
    expect(transition(named ?? recorded, again, at)).toBeUndefined()
})

test('looks up an unknown settlement with backoff and without a limit on attempts', () => {
  let row = samplePayment({ state: 'settling' })
  const waits = Array.from({ length: 12 }, () => {
    row = transition(row, changes['no-answer'], at) ?? row
    return (row.dueAt ?? 0) - at.now
  })
  expect(waits.slice(0, 3)).toEqual([1000, 2000, 5000])
  expect(waits.at(-1)).toBe(3_600_000)
})

test('reconciles an unused completed session after 7 days', () => {
  const next = transition(samplePayment({ state: 'unknown', kind: 'session' }), changes.settled, at)
  expect(next).toMatchObject({ state: 'settled', dueAt: at.now + 7 * 24 * 3_600_000 })
})

test('a look-up hides the row from other processes until it must have ended, and a failure is notified again', () => {
  const lookup = transition(samplePayment({ state: 'unknown', attempts: 3 }), changes['start-lookup'], at)
  expect(lookup).toMatchObject({ state: 'unknown', attempts: 3, dueAt: at.now + 180_000 })
  const failed = transition(samplePayment({ state: 'settling', taskId: 't' }), changes.failed, at)
  expect(failed?.dueAt).toBe(at.now + 90_000)
  expect(transition(failed ?? samplePayment(), changes.notified, at)).not.toHaveProperty('dueAt')
})
