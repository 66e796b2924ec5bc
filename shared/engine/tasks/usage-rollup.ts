import { subjectOf } from '@parley/kit/auth/caller'
import type { Log } from '@parley/kit/process/log'
import { isTerminal } from '@parley/wire/model/task'
import type { TaskRecord } from '../store/store.ts'
import { noUsage, sumOf, type UsageCounts, type UsageRow, type UsageStore } from '../store/usage-days.ts'

export interface UsageRollupOptions {
  store: UsageStore
  log: Pick<Log, 'warn'>
  /** How often the usage is written. Default 5 s. A crash loses the usage since the last write. */
  flushMs?: number
  /** Maximum number of owners per day. The usage of further owners is added up under `*`. Default 10,000. */
  ownersMax?: number
  now?: () => number
}

/** The owner of the usage of all owners beyond the maximum. */
export const otherOwners = '*'

/** How many days of usage are kept. */
export const usageDaysKept = 400
const dayMs = 86_400_000

export const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/**
 * Adds up what tasks use, per day in UTC and owner. The sums are kept in memory and written together every few seconds, so that no
 * task causes a write of its own.
 */
export class UsageRollup implements AsyncDisposable {
  readonly #options: UsageRollupOptions
  readonly #ownersMax: number
  readonly #now: () => number
  readonly #timer: NodeJS.Timeout
  /** The usage since the last write, by day and owner. */
  #pending = new Map<string, UsageRow>()
  /** The owners of a day that have a row. */
  #known = { day: '', owners: new Set<string>() }
  #flushing: Promise<void> | undefined

  constructor(options: UsageRollupOptions) {
    this.#options = options
    this.#ownersMax = options.ownersMax ?? 10_000
    this.#now = options.now ?? Date.now
    this.#timer = setInterval(() => void this.flush(), options.flushMs ?? 5000).unref()
  }

  /** Call this after a task is accepted. */
  accepted({ owner }: Pick<TaskRecord, 'owner'>): void {
    this.#add(owner, { tasks: 1 })
  }

  /** Call this with the tokens of language models that a handler reports, even if its run fails later. */
  reported(
    { inputTokens, outputTokens }: Pick<UsageCounts, 'inputTokens' | 'outputTokens'>,
    owner: string,
  ): void {
    this.#add(owner, { inputTokens: tokensIn(inputTokens), outputTokens: tokensIn(outputTokens) })
  }

  /** Call this after each commit. */
  committed(before: TaskRecord, after: TaskRecord): void {
    const workedMs = Math.max(0, after.workedMs - before.workedMs)
    const hasEnded = !isTerminal(before.status.state) && isTerminal(after.status.state)
    if (workedMs === 0 && !hasEnded) return
    const isCompleted = after.status.state === 'completed'
    this.#add(after.owner, {
      workedMs,
      ...(hasEnded && (isCompleted ? { completed: 1 } : { failed: 1 })),
    })
  }

  /** Writes the usage. Resolves when all usage until now is stored, or could not be stored and will be retried. */
  async flush(): Promise<void> {
    await this.#flushing
    if (this.#pending.size === 0) return
    this.#flushing = this.#write(this.#pending)
    this.#pending = new Map()
    await this.#flushing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  async #write(rows: Map<string, UsageRow>): Promise<void> {
    const { store, log } = this.#options
    try {
      const limited = new Map<string, UsageRow>()
      for (const row of rows.values()) merge(limited, { ...row, owner: await this.#limited(row) })
      await store.addUsage([...limited.values()])
    } catch (error) {
      log.warn({ err: error, rows: rows.size }, 'could not store usage, which will be retried')
      for (const row of rows.values()) merge(this.#pending, row)
    }
  }

  /** Returns the owner, or `*` if the day has too many owners. */
  async #limited({ day, owner }: UsageRow): Promise<string> {
    if (day !== this.#known.day) {
      const rows = await this.#options.store.listUsage(day)
      this.#known = { day, owners: new Set(rows.map((row) => row.owner)) }
      await this.#options.store.removeUsage(dayOf(this.#now() - usageDaysKept * dayMs))
    }
    const { owners } = this.#known
    if (owners.has(owner)) return owner
    if (owners.size >= this.#ownersMax) return otherOwners
    owners.add(owner)
    return owner
  }

  /** The usage of tasks that agents created for a client belongs to the client. */
  #add(of: string, counts: Partial<UsageCounts>): void {
    const owner = subjectOf(of)
    const isFull = this.#pending.size >= this.#ownersMax
    const day = dayOf(this.#now())
    const key = keyOf({ day, owner })
    const named = isFull && !this.#pending.has(key) ? otherOwners : owner
    merge(this.#pending, { day, owner: named, ...noUsage, ...counts })
  }
}

/** Handlers report any number. */
const tokensIn = (tokens: number) => (Number.isFinite(tokens) && tokens > 0 ? Math.round(tokens) : 0)

const keyOf = ({ day, owner }: Pick<UsageRow, 'day' | 'owner'>) => `${day} ${owner}`

function merge(rows: Map<string, UsageRow>, row: UsageRow): void {
  const key = keyOf(row)
  const before = rows.get(key)
  rows.set(key, before === undefined ? row : { ...row, ...sumOf(before, row) })
}
