import { expect, test } from 'vitest'
import type { OpenStore } from './store.cases.ts'
import { noUsage, type UsageRow } from './usage-days.ts'

const row = (day: string, owner: string, counts: Partial<UsageRow> = {}): UsageRow => ({
  day,
  owner,
  ...noUsage,
  ...counts,
})

export function usageCases(open: OpenStore): void {
  test('counts of the same day and owner are added, also concurrently', async () => {
    await using store = await open()
    const adds = Array.from({ length: 10 }, () =>
      store.usage.addUsage([
        row('2026-11-22', 'alice', { tasks: 1, workedMs: 5 }),
        row('2026-11-22', 'x'.repeat(3000), { failed: 1 }),
      ]),
    )
    await Promise.all(adds)
    await store.usage.addUsage([row('2026-11-23', 'alice', { completed: 1 })])
    const rows = await store.usage.listUsage('2026-11-22')
    expect(rows.toSorted((a, b) => a.owner.length - b.owner.length)).toEqual([
      row('2026-11-22', 'alice', { tasks: 10, workedMs: 50 }),
      row('2026-11-22', 'x'.repeat(3000), { failed: 10 }),
    ])
  })

  test('days before a day are removed', async () => {
    await using store = await open()
    const days = ['2025-12-31', '2026-01-01', '2026-01-02']
    for (const day of days) await store.usage.addUsage([row(day, 'alice', { tasks: 1 })])
    expect(await store.usage.removeUsage('2026-01-02')).toBe(2)
    const left = await Promise.all(days.map((day) => store.usage.listUsage(day)))
    expect(left.map(({ length }) => length)).toEqual([0, 0, 1])
  })
}
