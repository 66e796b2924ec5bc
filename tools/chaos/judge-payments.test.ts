import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { expect, test } from 'vitest'
import { judgeWork, type Payer, type Row } from './judge-payments.ts'
import type { Acknowledged } from './load.ts'

const address = '0xAb'
const task = (id: string, state = 'completed') => ({ id, status: { state } }) as unknown as WireTask
const row = (id: string, more: Partial<Row> = {}): Row => {
  const hash = `0x${id}`
  return { state: 'earned', tx_hash: hash, task_id: id, payer: '0xab', amount_atomic: '10000', ...more }
}
const acknowledged = (taskId: string, txHash?: string) =>
  ({ taskId, txHash, paid: true }) as unknown as Acknowledged
const payer = (more: Partial<Payer>): Payer => ({
  address,
  paidWithoutTask: 0,
  acknowledged: [],
  tasks: [],
  ...more,
})

test('reports no findings if each task has a payment, earned if the task completed and orphaned otherwise', () => {
  const tasks = [task('a'), task('b', 'canceled')]
  const rows = [row('a'), row('b', { state: 'payment-orphaned' }), row('c', { payer: '0xother' })]
  expect(
    judgeWork(payer({ tasks, acknowledged: [acknowledged('a', '0xa'), acknowledged('b')] }), rows),
  ).toEqual([])
})

test.each<[string, Partial<Payer>, Row[]]>([
  ['done for nothing', { tasks: [task('a')] }, []],
  ['paid twice', { tasks: [task('a')] }, [row('a'), row('a', { tx_hash: '0xb' })]],
  ['earned: task', { tasks: [task('a', 'failed')] }, [row('a')]],
  ['orphaned: task', { tasks: [task('a')] }, [row('a', { state: 'payment-orphaned' })]],
  ['receipt of another', { tasks: [task('a')], acknowledged: [acknowledged('a', '0xb')] }, [row('a')]],
  ['for no task', { paidWithoutTask: 1 }, [row('a')]],
  ['1 payments without a task, the ledger has 0', { paidWithoutTask: 1 }, []],
  ['0 payments without a task, the ledger has 1', {}, [row('a', { state: 'payment-orphaned' })]],
])('reports %s', (finding, expected, rows) => {
  const found = judgeWork(payer(expected), rows)
  expect(found).toEqual([expect.stringContaining(finding)])
})
