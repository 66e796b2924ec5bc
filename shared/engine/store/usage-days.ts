import {
  type DocumentDatabase,
  declareCollection,
  type Found,
  type Row,
} from '@parley/kit/database/documents'
import { untilDone } from '@parley/kit/database/retry'

/** What the tasks of one owner used on one day. */
export interface UsageCounts {
  /** The number of accepted tasks. */
  tasks: number
  completed: number
  /** The number of failed, rejected and canceled tasks. */
  failed: number
  workedMs: number
  inputTokens: number
  outputTokens: number
}

/** A day in UTC, such as 2026-11-22, and an owner. */
export interface UsageKey {
  day: string
  owner: string
}
export type UsageRow = UsageKey & UsageCounts

/** Usage per day and owner. A change is durable once its promise resolves. */
export interface UsageStore {
  /** Adds the counts to those of the same day and owner. Several processes may add to the same row. */
  addUsage(rows: readonly UsageRow[]): Promise<void>
  listUsage(day: string): Promise<UsageRow[]>
  /** Removes rows of earlier days, at most 10,000 of them. */
  removeUsage(before: string): Promise<number>
}

const fields = { day: 'key', owner: 'key', version: 'integer', body: 'text' } as const

export const usageCollection = declareCollection({
  name: 'usage_days',
  fields,
  key: ['day', 'owner'],
  indexes: { of_day: { equals: ['day'] }, by_day: { order: 'day' } },
  mongodb: { without: ['owner'] },
})

const removedMax = 10_000

export function usageStore(database: DocumentDatabase): UsageStore {
  const days = database.collection(usageCollection)
  const add = (row: UsageRow) =>
    untilDone(async () => {
      const { day, owner } = row
      const found = await days.get({ day, owner })
      const next = rowOf(row, found)
      if (found === undefined) return (await days.insert(next)) === 'written' || undefined
      const { version, body } = next
      const written = await days.update({ day, owner }, { version, body }, { version: found.version })
      return written === 'written' || undefined
    })
  return {
    addUsage: async (rows) => {
      if (database.transaction === undefined) return void (await Promise.all(rows.map(add)))
      return database.transaction((open) => {
        const now = open(usageCollection)
        for (const row of rows) now.putNow(rowOf(row, now.getNow({ day: row.day, owner: row.owner })))
      })
    },
    listUsage: async (day) => (await days.find('of_day', { day })).map(usageOf),
    removeUsage: (before) => days.removeMany('by_day', {}, { before, limit: removedMax }),
  }
}

function rowOf(row: UsageRow, found: Found<typeof fields> | undefined): Row<typeof fields> {
  const before = found && usageOf(found)
  const sum = before === undefined ? row : { ...row, ...sumOf(before, row) }
  return { day: row.day, owner: row.owner, version: (found?.version ?? 0) + 1, body: JSON.stringify(sum) }
}

/** The row in another database. */
export const copiedUsage = (found: Found<typeof fields>) => rowOf(usageOf(found), undefined)

const usageOf = ({ body }: Found<typeof fields>): UsageRow => JSON.parse(body)

export const noUsage: UsageCounts = {
  tasks: 0,
  completed: 0,
  failed: 0,
  workedMs: 0,
  inputTokens: 0,
  outputTokens: 0,
}

export function sumOf(a: UsageCounts, b: UsageCounts): UsageCounts {
  return {
    tasks: a.tasks + b.tasks,
    completed: a.completed + b.completed,
    failed: a.failed + b.failed,
    workedMs: a.workedMs + b.workedMs,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
  }
}
