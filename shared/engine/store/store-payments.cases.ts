import { randomUUID } from 'node:crypto'
import { timestamp } from '@parley/wire/model/timestamp'
import { expect, test } from 'vitest'
import type { PaymentRecord } from './payment-store.ts'
import type { OpenStore } from './store.cases.ts'

const [alice, bob] = ['did:parley:alice:agent:1', 'did:parley:bob:agent:2']

export function samplePayment(fields: Partial<PaymentRecord> = {}): PaymentRecord {
  const at = timestamp()
  const address = `0x${'1'.repeat(40)}`
  return {
    id: randomUUID(),
    owner: alice,
    kind: 'direct',
    state: 'claimed',
    version: 0,
    terms: {
      amount: '0.01',
      atomic: '10000',
      decimals: 6,
      asset: address,
      network: 'eip155:31337',
      payTo: address,
      extra: { name: 'USD Coin', version: '2' },
    },
    sandbox: true,
    attempts: 0,
    createdAt: at,
    updatedAt: at,
    ...fields,
  }
}

const next = (record: PaymentRecord, fields: Partial<PaymentRecord>): PaymentRecord => ({
  ...record,
  ...fields,
  version: record.version + 1,
})

/** A payment has one row, a nonce and a purpose are taken only once, and test money is counted exactly. */
export function paymentCases(open: OpenStore): void {
  test('payments of several states are listed newest first, page by page and by owner', async () => {
    await using store = await open()
    const states = ['earned', 'orphaned', 'failed', 'orphaned'] as const
    const records = states.map((state, i) => samplePayment({ state, owner: i === 3 ? bob : alice }))
    for (const record of records) await store.payments.addPayment(record)
    const ids = records.map(({ id }) => id)
    const query = { states: ['earned', 'orphaned'] as const, limit: 2 }
    const first = await store.payments.listPayments(query)
    const second = await store.payments.listPayments({ ...query, cursor: first.nextCursor })
    const listed = [...first.items, ...second.items].map(({ id }) => id)
    expect(listed).toEqual([ids[3], ids[1], ids[0]])
    expect(second.nextCursor).toBeUndefined()
    const ofAlice = await store.payments.listPayments({ ...query, owner: alice })
    expect(ofAlice.items.map(({ id }) => id)).toEqual([ids[1], ids[0]])
  })

  test('is found by its id, but only for its owner', async () => {
    await using store = await open()
    const record = samplePayment({ nonceKey: 'n', purpose: 'p', taskId: 't', captureToken: 'c', dueAt: 5 })
    expect(await store.payments.addPayment(record)).toBe('added')
    expect(await store.payments.findPayment(record.id, alice)).toEqual(record)
    expect(await store.payments.findPayment(record.id, bob)).toBeUndefined()
    expect(await store.payments.loadPayment(record.id)).toEqual(record)
    expect(await store.payments.findByNonce('n')).toEqual(record)
    expect(await store.payments.findByPurpose('p')).toEqual(record)
    expect(await store.payments.findByCapture('c')).toEqual(record)
    expect(await store.payments.listOfTask('t')).toEqual([record])
    expect(await store.payments.findByNonce('x')).toBeUndefined()
    expect(await store.payments.listOfTask('x')).toEqual([])
  })

  test('is accepted once when 50 concurrent payments have the same nonce', async () => {
    await using store = await open()
    const added = await Promise.all(
      Array.from({ length: 50 }, () => store.payments.addPayment(samplePayment({ nonceKey: 'n' }))),
    )
    expect(added.filter((one) => one === 'added')).toHaveLength(1)
    expect(added.filter((one) => one === 'nonce')).toHaveLength(49)
  })

  test('is rejected while another row has its nonce or purpose', async () => {
    await using store = await open()
    const first = samplePayment({ nonceKey: 'n', purpose: 'p' })
    const second = samplePayment()
    await store.payments.addPayment(first)
    await store.payments.addPayment(second)
    expect(await store.payments.addPayment(samplePayment({ purpose: 'p' }))).toBe('purpose')
    expect(await store.payments.commitPayment(next(second, { nonceKey: 'n' }))).toBe('nonce')
    expect(await store.payments.commitPayment(next(second, { purpose: 'p' }))).toBe('purpose')
    expect(await store.payments.loadPayment(second.id)).toEqual(second)
    const { purpose: _purpose, ...rest } = next(first, { state: 'failed' })
    expect(await store.payments.commitPayment(rest)).toBe('committed')
    expect(await store.payments.commitPayment(next(second, { purpose: 'p' }))).toBe('committed')
  })

  test('is changed only if the version is current', async () => {
    await using store = await open()
    const record = samplePayment()
    await store.payments.addPayment(record)
    const changes = await Promise.all(
      Array.from({ length: 10 }, () => store.payments.commitPayment(next(record, { state: 'settling' }))),
    )
    expect(changes.filter((one) => one === 'committed')).toHaveLength(1)
    expect(changes.filter((one) => one === 'stale')).toHaveLength(9)
    expect(await store.payments.removePayment(record.id, 0)).toBe(false)
    expect(await store.payments.removePayment(record.id, 1)).toBe(true)
    expect(await store.payments.commitPayment(next(record, {}))).toBe('stale')
  })

  test('is counted, and listed by its state in order of creation', async () => {
    await using store = await open()
    const all = Array.from({ length: 5 }, () => samplePayment({ state: 'orphaned' }))
    for (const record of [...all, samplePayment()]) await store.payments.addPayment(record)
    const first = await store.payments.listByState({ state: 'orphaned', limit: 3 })
    expect(first.items).toEqual(all.slice(0, 3))
    const cursor = first.nextCursor ?? 0
    expect(await store.payments.listByState({ state: 'orphaned', limit: 3, cursor })).toEqual({
      items: all.slice(3),
    })
    expect(await store.payments.countPaymentsByState()).toEqual({ orphaned: 5, claimed: 1 })
  })

  test('is due once its time has passed, and due payments are listed earliest first', async () => {
    await using store = await open()
    const rows = [30, 10, 20, undefined].map((dueAt) => samplePayment(dueAt === undefined ? {} : { dueAt }))
    for (const record of rows) await store.payments.addPayment(record)
    expect(await store.payments.listDuePayments(20, 10)).toEqual([rows[1], rows[2]])
    expect(await store.payments.listDuePayments(99, 1)).toEqual([rows[1]])
  })

  test('open sessions are counted per owner and in total', async () => {
    await using store = await open()
    for (const owner of [alice, alice, alice, bob])
      await store.payments.addPayment(samplePayment({ kind: 'session', state: 'open', owner }))
    await store.payments.addPayment(samplePayment({ kind: 'session', state: 'expired' }))
    expect(await store.payments.countOpen(alice)).toEqual({ owner: 3, all: 4 })
  })

  test('is removed only if no transfer was made', async () => {
    await using store = await open()
    for (const state of ['expired', 'failed', 'earned', 'orphaned', 'refunded', 'open', 'unknown'] as const)
      await store.payments.addPayment(samplePayment({ state }))
    expect(await store.payments.removeUnpaid('0', 10)).toBe(0)
    expect(await store.payments.removeUnpaid('9999', 10)).toBe(2)
    expect(await store.payments.countPaymentsByState()).toEqual({
      earned: 1,
      orphaned: 1,
      refunded: 1,
      open: 1,
      unknown: 1,
    })
  })

  test('a test money balance pays only once per nonce and never more than it contains', async () => {
    await using store = await open()
    const filledWith = 10n ** 40n
    const move = (nonceKey: string, atomic: bigint) =>
      store.payments.moveTestMoney({ nonceKey, purse: 'p', atomic, txHash: `0x${nonceKey}`, filledWith })
    const outcomes = await Promise.all([move('1', 1n), move('1', 1n), move('2', filledWith - 2n)])
    expect(outcomes.slice(0, 2).toSorted()).toEqual(['already', 'moved'])
    expect(outcomes[2]).toBe('moved')
    expect(await move('3', 2n)).toBe('insufficient')
    expect(await store.payments.testPurse('p', filledWith)).toBe(1n)
    expect(await store.payments.testPurse('q', filledWith)).toBe(filledWith)
    expect(await store.payments.findTestTransfer('1')).toEqual({
      nonceKey: '1',
      purse: 'p',
      atomic: 1n,
      txHash: '0x1',
    })
    expect(await store.payments.findTestTransfer('3')).toBeUndefined()
  })
}
