import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { unavailable } from '@parley/kit/database/errors'
import { untilDone } from '@parley/kit/database/retry'
import { waitAtMost } from '@parley/kit/process/wait-at-most'
import { allTags } from './invalidation-log.ts'
import { LeaseGrantor, leaseWaitMs } from './lease-grantor.ts'
import type { GatewayRecord, Invalidation, LeaseRecords, SharedLog } from './lease-records.ts'
import type { Leases } from './leases.ts'

/** A gateway grants leases for this long after the start of its last successful synchronization. */
const gatewayLeaseMs = 1000
/** After this time, a gateway that has not acknowledged an invalidation has no holders from before it. */
const gatewayWaitMs = gatewayLeaseMs * 1.05 + leaseWaitMs
/** How often a gateway synchronizes while it grants leases, and while it grants none. */
const [activeEveryMs, idleEveryMs] = [100, 1000]
/** The record of a gateway that is silent for this long is removed. */
const silentMs = gatewayWaitMs + idleEveryMs + 1000
/** A gateway without holders for this long stops granting leases. */
const idleAfterMs = 30_000
/** How often a revocation looks for the acknowledgements of other gateways. */
const acknowledgedEveryMs = 20
/** Limits of the shared log. Gateways that lag behind by more drop all responses. */
const [recentMax, recentMaxChars] = [200, 65_536]
const lastWriteMs = 1000

export interface SharedLeasesOptions {
  records: LeaseRecords
  /** Called when synchronization begins to fail. */
  onFailure: (error: unknown) => void
  /** Monotonic clock in milliseconds. */
  now?: () => number
}

/** Invalidations that are written to the log together. */
interface Batch {
  tags: Set<string>
  written: Promise<SharedLog>
}

/**
 * The leases of one of several gateways on a database. Gateways hold leases of each other through the database: a
 * gateway grants leases only shortly after it has read the log, and a revocation waits until every gateway has
 * acknowledged it, or until leases that were granted without it have ended
 * (docs/decisions/0023-coherent-introspection.md#several-gateways).
 */
export class SharedLeases implements Leases {
  readonly grantor: LeaseGrantor
  readonly #records: LeaseRecords
  readonly #onFailure: (error: unknown) => void
  readonly #now: () => number
  readonly #id = randomUUID()
  #beats = 0
  /** The last update by each other gateway, and when this gateway first saw it. */
  readonly #seen = new Map<string, { beat: number; at: number }>()
  #isAdded = false
  #isActive = false
  #isGranting = false
  #activeUntil = 0
  #syncing: Promise<void> | undefined
  #batch: Batch | undefined
  #writing: Promise<unknown> = Promise.resolve()
  /** Tags that could not be written. */
  readonly #unwritten = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #isFailing = false
  #isClosed = false

  constructor({ records, onFailure, now = () => performance.now() }: SharedLeasesOptions) {
    this.#records = records
    this.#onFailure = onFailure
    this.#now = now
    this.grantor = new LeaseGrantor({ now })
    this.grantor.grantUntil(Number.NEGATIVE_INFINITY)
    this.#schedule()
  }

  async prepare(seq = 0): Promise<void> {
    this.#activeUntil = this.#now() + idleAfterMs
    if (this.#isGranting && seq <= this.grantor.seq) return
    this.#isActive = true
    // A synchronization in progress may have begun before the record said that this gateway grants leases.
    await this.#syncing
    await this.#sync()
  }

  async invalidate(tags: readonly string[]): Promise<void> {
    const log = await this.#append(tags)
    await Promise.all([this.grantor.settled(), this.#acknowledged(log)])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.grantor.stop()
    await waitAtMost(lastWriteMs, this.#leave())
  }

  async #leave(): Promise<void> {
    await this.#syncing
    // The record of a gateway with holders stays until others have waited for their leases.
    if (this.#isAdded && !this.grantor.isOutstanding)
      await this.#records.removeGateway(this.#id).catch(() => {})
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#sync(), this.#isActive ? activeEveryMs : idleEveryMs).unref()
  }

  /** Concurrent calls share a synchronization. */
  #sync(): Promise<void> {
    this.#syncing ??= this.#trySynchronize().finally(() => {
      this.#syncing = undefined
      this.#schedule()
    })
    return this.#syncing
  }

  async #trySynchronize(): Promise<void> {
    try {
      await this.#synchronize()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed) this.#onFailure(error)
      this.#isFailing = true
    }
  }

  /**
   * Updates this gateway's record, and then reads the log. An invalidation that the read does not contain is written
   * later, so its gateway finds the record and waits.
   */
  async #synchronize(): Promise<void> {
    const startedAt = this.#now()
    if (!this.grantor.hasHolders && startedAt > this.#activeUntil) this.#isActive = false
    const grants = this.#isActive
    if (!grants) this.grantor.grantUntil(Number.NEGATIVE_INFINITY)
    this.#isGranting &&= grants
    await this.#beat(grants || this.grantor.isOutstanding)
    const { log, gateways } = await this.#records.read()
    const current = log ?? (await this.#createLog())
    if (current.instance === this.grantor.instance && current.seq < this.grantor.seq) {
      // The database was restored from a backup.
      await this.#records.writeLog({ instance: randomUUID(), seq: current.seq + 1, recent: [] }, current.seq)
      return
    }
    this.#follow(current)
    if (grants) this.grantor.grantUntil(startedAt + gatewayLeaseMs)
    this.#isGranting = grants
    if (this.#unwritten.size > 0) await this.#append([])
    await this.#removeSilent(gateways)
  }

  async #beat(grants: boolean): Promise<void> {
    this.#beats += 1
    const { instance, settledSeq: applied } = this.grantor
    const record = { id: this.#id, beat: this.#beats, instance, applied, grants }
    if (this.#isAdded && (await this.#records.updateGateway(record))) return
    await this.#records.addGateway(record)
    this.#isAdded = true
  }

  async #createLog(): Promise<SharedLog> {
    await this.#records.writeLog({ instance: randomUUID(), seq: 1, recent: [] }, undefined)
    const { log } = await this.#records.read()
    if (log === undefined) throw unavailable('The log of invalidations could not be created')
    return log
  }

  /** Acknowledges the invalidations as soon as they are settled. */
  #follow(log: SharedLog): void {
    const isNew = log.seq !== this.grantor.seq
    const settled = this.grantor.follow(log)
    if (isNew) void settled.then(() => (this.#isGranting && !this.#isClosed ? this.#sync() : undefined))
  }

  /** Writes the tags to the log, together with those of concurrent calls, and returns the log. */
  async #append(tags: readonly string[]): Promise<SharedLog> {
    this.#batch ??= this.#newBatch()
    for (const tag of tags) this.#batch.tags.add(tag)
    return this.#batch.written
  }

  /** While one batch is written, the next one is collected. */
  #newBatch(): Batch {
    const tags = new Set<string>()
    const written = this.#writing.then(async () => {
      this.#batch = undefined
      for (const tag of this.#unwritten) tags.add(tag)
      try {
        const log = await this.#write([...tags])
        for (const tag of tags) this.#unwritten.delete(tag)
        return log
      } catch (error) {
        // The next synchronization writes them.
        for (const tag of tags) this.#unwritten.add(tag)
        throw error
      }
    })
    this.#writing = written.catch(() => {})
    return { tags, written }
  }

  async #write(tags: readonly string[]): Promise<SharedLog> {
    return untilDone(async () => {
      const log = (await this.#records.read()).log ?? (await this.#createLog())
      const seq = log.seq + 1
      const next = { ...log, seq, recent: bounded([...log.recent, { seq, tags }]) }
      if (!(await this.#records.writeLog(next, log.seq))) return undefined
      this.#follow(next)
      return next
    })
  }

  /** Resolves when no other gateway has a holder that uses a response from before the invalidation. */
  async #acknowledged({ instance, seq }: SharedLog): Promise<void> {
    const until = this.#now() + gatewayWaitMs
    const isWaiting = (gateway: GatewayRecord) =>
      gateway.id !== this.#id && gateway.grants && (gateway.instance !== instance || gateway.applied < seq)
    while (this.#now() < until) {
      const { gateways } = await this.#records.read().catch(() => ({ gateways: undefined }))
      if (gateways?.some(isWaiting) === false) return
      await wait(acknowledgedEveryMs)
    }
  }

  /** A gateway that has crashed may have removed a record without writing the invalidation. */
  async #removeSilent(gateways: readonly GatewayRecord[]): Promise<void> {
    const now = this.#now()
    const there = new Set(gateways.map(({ id }) => id))
    for (const id of this.#seen.keys()) if (!there.has(id)) this.#seen.delete(id)
    for (const { id, beat } of gateways) {
      if (id === this.#id) continue
      const seen = this.#seen.get(id)
      if (seen?.beat !== beat) this.#seen.set(id, { beat, at: now })
      else if (seen.at + silentMs < now) {
        await this.#append([allTags])
        await this.#records.removeGateway(id, beat)
      }
    }
  }
}

/** Returns the latest invalidations within the limits of the log. */
function bounded(all: readonly Invalidation[]): Invalidation[] {
  const recent: Invalidation[] = []
  let chars = 0
  for (const invalidation of all.toReversed()) {
    chars += JSON.stringify(invalidation).length
    if (recent.length === recentMax || chars > recentMaxChars) break
    recent.unshift(invalidation)
  }
  return recent
}
