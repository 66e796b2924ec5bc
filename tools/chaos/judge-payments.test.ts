import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { expect, test } from 'vitest'
import { judgeWork, type Payer, type Row } from './judge-payments.ts'
import type { Told } from './load.ts'

const address = '0xAb'
const task = (id: string, state = 'completed') => ({ id, status: { state } }) as unknown as WireTask
const row = (id: string, more: Partial<Row> = {}): Row => {
  const hash = `0x${id}`
  return { state: 'earned', tx_hash: hash, task_id: id, payer: '0xab', amount_atomic: '10000', ...more }
}
const told = (taskId: string, txHash?: string) => ({ taskId, txHash, paid: true }) as unknown as Told
const payer = (more: Partial<Payer>): Payer => ({ address, paidInVain: 0, told: [], tasks: [], ...more })

test('no findings with a payment per task, earned when completed, orphaned otherwise', () => {
  const tasks = [task('a'), task('b', 'canceled')]
  const rows = [row('a'), row('b', { state: 'payment-orphaned' }), row('c', { payer: '0xother' })]
  expect(judgeWork(payer({ tasks, told: [told('a', '0xa'), told('b')] }), rows)).toEqual([])
})

test.each<[string, Partial<Payer>, Row[]]>([
  ['done for nothing', { tasks: [task('a')] }, []],
  ['paid twice', { tasks: [task('a')] }, [row('a'), row('a', { tx_hash: '0xb' })]],
  ['earned: task', { tasks: [task('a', 'failed')] }, [row('a')]],
  ['orphaned: task', { tasks: [task('a')] }, [row('a', { state: 'payment-orphaned' })]],
  ['receipt of another', { tasks: [task('a')], told: [told('a', '0xb')] }, [row('a')]],
  ['for no task', { paidInVain: 1 }, [row('a')]],
  ['1 paid in vain, 0 are for no task', { paidInVain: 1 }, []],
  ['0 paid in vain, 1 are for no task', {}, [row('a', { state: 'payment-orphaned' })]],
])('reports: %s', (finding, known, rows) => {
  const found = judgeWork(payer(known), rows)
  expect(found).toEqual([expect.stringContaining(finding)])
})
