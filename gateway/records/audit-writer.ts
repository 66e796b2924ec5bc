import { newId } from '@parley/kit/database/new-id'
import type { AuditSink, Decision } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { nowMicros } from '@parley/wire/model/timestamp'
import type { AuditEntries, AuditEntry } from './audit-entries.ts'
import { BatchedWrites } from './batched-writes.ts'

export interface AuditWriterOptions {
  entries: AuditEntries
  log: Log
  /** AUDIT_RETENTION_DAYS. */
  retentionDays: number
  /** Default 1 s. */
  everyMs?: number
  quotas?: Partial<AuditQuotas>
}

/** Bounds, per source and in total. A source is a client, or the address of requests without one. */
export interface AuditQuotas {
  /** Accepted actions of one source that are stored in one minute. */
  allowedPerMinute: number
  /** Refusals of one source that are stored in one minute, and of all sources together. */
  refusedPerMinute: number
  allRefusedPerMinute: number
  /** Stored entries of one source, and of all, of each of the two kinds. */
  sourceMax: number
  totalMax: number
}

const defaultQuotas: AuditQuotas = {
  allowedPerMinute: 600,
  refusedPerMinute: 30,
  allRefusedPerMinute: 600,
  sourceMax: 5000,
  totalMax: 200_000,
}

/** Sources whose entries of this minute are counted. Entries of further sources are not stored. */
const sourcesMax = 20_000
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

type Queued = AuditEntry & { source: string }

/**
 * Stores the audit log in the background and in batches. Quotas per source, counted per minute, keep a flood of one source from
 * displacing the entries of others; one entry per source and minute has the number of the omitted ones. The log has all entries.
 */
export class AuditWriter implements AsyncDisposable {
  readonly #quotas: AuditQuotas
  readonly #writes: BatchedWrites<Queued>
  /** By kind and source, the number of entries in the current minute. */
  #counts = new Map<string, { source: string; allowed: boolean; count: number; max: number }>()
  #refused = 0
  #minute = 0

  constructor({ entries, log, retentionDays, everyMs, quotas }: AuditWriterOptions) {
    this.#quotas = { ...defaultQuotas, ...quotas }
    const { sourceMax, totalMax } = this.#quotas
    this.#writes = new BatchedWrites({
      write: async (batch) => {
        await entries.add(batch)
        const sources = new Map(batch.map((entry) => [`${entry.allowed} ${entry.source}`, entry]))
        for (const { allowed, source } of sources.values())
          await entries.trimSource(allowed, source, sourceMax)
      },
      beforeFlush: () => this.#nextMinute(),
      clean: async () => {
        await entries.removeBefore((Date.now() - retentionDays * dayMs) * 1000)
        for (const allowed of [true, false]) await entries.trim(allowed, totalMax)
      },
      what: 'the audit log',
      log,
      ...(everyMs !== undefined && { everyMs }),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closeMinute()
    await this.#writes[Symbol.asyncDispose]()
  }

  /** Queues the entry if the quotas allow it. Never blocks or throws. */
  readonly record: AuditSink = (decision) => {
    this.#nextMinute()
    const source = sourceOf(decision)
    if (this.#isWithinQuota(source, decision.allowed)) this.#add(decision, source)
  }

  /** Writes the queued entries. Never rejects. */
  flush(): Promise<void> {
    return this.#writes.flush()
  }

  /** Removes entries over the retention time or the maximum. Never rejects. */
  clean(): Promise<void> {
    return this.#writes.clean()
  }

  #isWithinQuota(source: string, allowed: boolean): boolean {
    const { allowedPerMinute, refusedPerMinute, allRefusedPerMinute } = this.#quotas
    const key = `${allowed} ${source}`
    let counted = this.#counts.get(key)
    if (counted === undefined) {
      if (this.#counts.size >= sourcesMax) return false
      counted = { source, allowed, count: 0, max: allowed ? allowedPerMinute : refusedPerMinute }
      this.#counts.set(key, counted)
    }
    counted.count += 1
    if (counted.count > counted.max) return false
    if (allowed) return true
    this.#refused += 1
    return this.#refused <= allRefusedPerMinute
  }

  #nextMinute(): void {
    const minute = Math.floor(Date.now() / minuteMs)
    if (minute === this.#minute) return
    this.#closeMinute()
    this.#minute = minute
  }

  /** Starts to count from zero, and adds an entry for each source that exceeded its quota. */
  #closeMinute(): void {
    const counts = this.#counts
    const { allRefusedPerMinute } = this.#quotas
    const all = this.#refused - allRefusedPerMinute
    this.#counts = new Map()
    this.#refused = 0
    for (const { source, allowed, count, max } of counts.values())
      if (count > max) this.#add(suppressed(`${count - max} further entries of ${source}`), source, allowed)
    if (all > 0) this.#add(suppressed(`${all} further refusals of all sources`), 'all')
  }

  #add(decision: Decision, source: string, allowed = decision.allowed): void {
    this.#writes.add({ ...decision, id: newId(), at: nowMicros(), source, allowed })
  }
}

function sourceOf({ who, address = '' }: Decision): string {
  return who === undefined ? `address ${address}` : `client ${who}`
}

function suppressed(what: string): Decision {
  return { action: 'audit.suppressed', allowed: false, reason: `${what} are in the log only` }
}
