import { expect, test } from 'vitest'
import { type PaymentState, paymentStates } from '../../store/payment-store.ts'
import { samplePayment } from '../../store/store-payments.cases.ts'
import { changed, type PaymentChange } from './payment-transitions.ts'

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
  failed: { kind: 'failed', reason: 'x' },
  spend: { kind: 'spend', taskId: 't', purpose: 'p' },
  'take-over': { kind: 'take-over' },
  reclaim: { kind: 'reclaim', purpose: 'p' },
  unspend: { kind: 'unspend' },
  earn: { kind: 'earn' },
  orphan: { kind: 'orphan', reason: 'x' },
  refund: { kind: 'refund', txHash: undefined },
  expire: { kind: 'expire' },
  wait: { kind: 'wait' },
  ask: { kind: 'ask' },
  told: { kind: 'told' },
} satisfies Record<PaymentChange['kind'], PaymentChange>

const allowed: Partial<Record<PaymentState, Partial<Record<PaymentChange['kind'], PaymentState>>>> = {
  open: { claim: 'claimed', expire: 'expired' },
  claimed: { settle: 'settling', release: 'open', failed: 'failed' },
  settling: { 'no-answer': 'unknown', settled: 'settled', failed: 'failed' },
  unknown: { 'no-answer': 'unknown', settled: 'settled', failed: 'failed', ask: 'unknown' },
  settled: { spend: 'spent', orphan: 'orphaned' },
  spent: { wait: 'spent', 'take-over': 'spent', unspend: 'settled', earn: 'earned', orphan: 'orphaned' },
  orphaned: { refund: 'refunded', earn: 'earned' },
  failed: { told: 'failed' },
}
const at = { timestamp: 't', now: 1000 }

for (const state of paymentStates) {
  for (const change of Object.values(changes)) {
    const to = allowed[state]?.[change.kind]
    test(`${state} + ${change.kind}: ${to ?? 'refused'}`, () => {
      const before = samplePayment({ state })
      const copy = structuredClone(before)
      expect(changed(before, change, at)?.state).toBe(to)
      expect(before).toEqual(copy)
    })
  }
}

test('what was claimed for a task is spent on it with its settlement', () => {
  const settling = samplePayment({ state: 'settling', taskId: 't', purpose: 'p' })
  expect(changed(settling, changes.settled, at)).toMatchObject({ state: 'spent', txHash: '0x1', taskId: 't' })
})

test('a payment that failed or was orphaned lets go of its purpose, and keeps its nonce', () => {
  for (const [state, change] of [
    ['settling', changes.failed],
    ['spent', changes.orphan],
  ] as const) {
    const next = changed(samplePayment({ state, nonceKey: 'n', purpose: 'p', taskId: 't' }), change, at)
    expect(next).toMatchObject({ nonceKey: 'n', taskId: 't' })
    expect(next?.purpose).toBeUndefined()
  }
})

test('off the list for refund comes what had no task, and nothing else', () => {
  const listed = (reason: string) => samplePayment({ state: 'orphaned', reason, taskId: 't' })
  const next = changed(listed('no_task'), changes.reclaim, at)
  expect(next).toMatchObject({ state: 'spent', taskId: 't', purpose: 'p' })
  expect(next?.reason).toBeUndefined()
  for (const reason of ['task_failed', 'task_canceled', 'unspent'])
    expect(changed(listed(reason), changes.reclaim, at)).toBeUndefined()
})

test('a refund is noted once; its transaction may be named later, once', () => {
  const refund = (txHash?: string) => ({ kind: 'refund', txHash }) as const
  const noted = changed(samplePayment({ state: 'orphaned' }), refund(), at)
  expect(noted?.state).toBe('refunded')
  if (noted === undefined) throw new Error('not noted')
  expect(changed(noted, refund(), at)).toBeUndefined()
  const named = changed(noted, refund('0x1'), at)
  expect(named).toMatchObject({ state: 'refunded', refundTxHash: '0x1' })
  for (const again of [refund(), refund('0x1'), refund('0x2')])
    expect(changed(named ?? noted, again, at)).toBeUndefined()
})

test('a settlement without an answer is looked up again and again, less and less often, for ever', () => {
  let row = samplePayment({ state: 'settling' })
  const waits = Array.from({ length: 12 }, () => {
    row = changed(row, changes['no-answer'], at) ?? row
    return (row.dueAt ?? 0) - at.now
  })
  expect(waits.slice(0, 3)).toEqual([1000, 2000, 5000])
  expect(waits.at(-1)).toBe(3_600_000)
})

test('a completed session that nobody uses is looked at after 7 days', () => {
  const next = changed(samplePayment({ state: 'unknown', kind: 'session' }), changes.settled, at)
  expect(next).toMatchObject({ state: 'settled', dueAt: at.now + 7 * 24 * 3_600_000 })
})

test('a look-up of one process is left alone by the others until it must have ended; what failed is told once more', () => {
  const asked = changed(samplePayment({ state: 'unknown', attempts: 3 }), changes.ask, at)
  expect(asked).toMatchObject({ state: 'unknown', attempts: 3, dueAt: at.now + 180_000 })
  const failed = changed(samplePayment({ state: 'settling', taskId: 't' }), changes.failed, at)
  expect(failed?.dueAt).toBe(at.now + 90_000)
  expect(changed(failed ?? samplePayment(), changes.told, at)).not.toHaveProperty('dueAt')
})
