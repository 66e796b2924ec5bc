import type { AnyDocument, ImportTarget, Place } from '../store/mongodb/import.ts'
import type { Row, SqliteSource } from '../store/sqlite/source.ts'
import { Checksum } from './checksum.ts'
import { asDocuments, type Documents, type Kind, type Plan } from './kind.ts'

/** Progress of a migration. */
export interface Progress {
  step: 'copy' | 'verify'
  kind: string
  done: number
  total: number
}

export interface CopyOptions {
  source: SqliteSource
  target: ImportTarget
  plan: Plan
  /** Checked between batches. After an abort, the next run continues after the last batch. */
  signal?: AbortSignal
  onProgress?: (progress: Progress) => void
}

/** The migration failed, or the copy differs from the source. `message` is a sentence for the operator. */
export class MigrationFailed extends Error {
  override readonly name = 'MigrationFailed'
}

/** Limits for one batch. */
const [batchDocuments, batchBytes] = [500, 8 * 1024 * 1024]

/** Counts the rows of each kind. */
export function countRows({ source, plan }: Pick<CopyOptions, 'source' | 'plan'>): Record<string, number> {
  const counts = plan.kinds.map((kind) => [kind.name, countOf(source, kind)] as const)
  return Object.fromEntries(counts)
}

function countOf(source: SqliteSource, { table, select }: Kind): number {
  if (!source.has(table)) return 0
  return Number(source.database.statement(`SELECT count(*) AS count FROM (${select})`).get()?.['count'])
}

/**
 * Copies the missing documents, one kind after the other.
 * @throws the signal's reason
 */
export async function copy(options: CopyOptions): Promise<void> {
  for (const kind of options.plan.kinds) {
    const place = await options.target.place(kind.name)
    if (place === true || !options.source.has(kind.table)) continue
    await copyKind(options, kind, place)
    await options.target.reached(kind.name, true)
  }
}

async function copyKind(options: CopyOptions, kind: Kind, from: Place | undefined): Promise<void> {
  const { source, target, signal } = options
  const total = countOf(source, kind)
  let batch = new Batch()
  let done = from === undefined ? 0 : rowsUpTo(source, kind, from)
  let sent: Promise<void> = Promise.resolve()
  const send = async (full: Batch, rows: number) => {
    await target.add(full.documents)
    await target.reached(kind.name, full.place)
    options.onProgress?.({ step: 'copy', kind: kind.name, done: rows, total })
  }
  try {
    for (const row of rowsOf(source, kind, from)) {
      batch.add(kind.documents(row), placeOf(kind, row))
      done += 1
      if (!batch.isFull) continue
      // The next batch is built while this one is being sent.
      await sent
      signal?.throwIfAborted()
      sent = send(batch, done)
      sent.catch(() => {})
      batch = new Batch()
    }
  } finally {
    await sent
  }
  if (!batch.isEmpty) await send(batch, done)
}

class Batch {
  readonly documents = new Map<string, AnyDocument[]>()
  place: Place = []
  #count = 0
  #bytes = 0

  get isFull(): boolean {
    return this.#count >= batchDocuments || this.#bytes >= batchBytes
  }

  get isEmpty(): boolean {
    return this.place.length === 0
  }

  add(made: Documents, place: Place): void {
    this.place = place
    for (const [name, all] of Object.entries(made)) {
      const documents = asDocuments(all)
      this.documents.set(name, [...(this.documents.get(name) ?? []), ...documents])
      this.#count += documents.length
      for (const document of documents) this.#bytes += sizeOf(document)
    }
  }
}

/** Approximate size in bytes. */
function sizeOf(document: AnyDocument): number {
  let size = 100
  for (const value of Object.values(document)) {
    if (typeof value === 'string') size += value.length
    else if (value instanceof Uint8Array) size += value.byteLength
  }
  return size
}

function* rowsOf(source: SqliteSource, { select, key }: Kind, from?: Place): Generator<Row> {
  const columns = Object.values(key)
  const order = `ORDER BY ${columns.join(', ')}`
  const behind = `WHERE (${columns.join(', ')}) > (${columns.map(() => '?').join(', ')})`
  const sql = from === undefined ? `${select} ${order}` : `${select} ${behind} ${order}`
  yield* source.database.statement(sql).iterate(...(from ?? []))
}

function rowsUpTo(source: SqliteSource, { select, key }: Kind, place: Place): number {
  const columns = Object.values(key)
  const before = `${select} WHERE (${columns.join(', ')}) <= (${columns.map(() => '?').join(', ')})`
  return Number(
    source.database.statement(`SELECT count(*) AS count FROM (${before})`).get(...place)?.['count'],
  )
}

const placeOf = ({ key }: Kind, row: Row): Place => Object.keys(key).map((name) => row[name] as Place[number])

export interface Verified {
  count: number
  checksum: string
}

/**
 * Reads both sides again, and compares the number and checksum of the documents in each collection.
 * @throws MigrationFailed, naming the first collection that differs
 */
export async function verify(options: CopyOptions): Promise<Record<string, Verified>> {
  const { target, plan, signal } = options
  const expected = expectedOf(options)
  const verified: Record<string, Verified> = {}
  for (const name of plan.collections) {
    const [wanted, found] = [expected.get(name) ?? new Checksum(), new Checksum()]
    for await (const document of target.read(name)) {
      found.add(document)
      if (found.count % 1000 !== 0) continue
      signal?.throwIfAborted()
      options.onProgress?.({ step: 'verify', kind: name, done: found.count, total: wanted.count })
    }
    if (found.count !== wanted.count || found.text !== wanted.text) throw differ(name, wanted, found)
    if (found.count > 0) verified[name] = { count: found.count, checksum: found.text }
  }
  return verified
}

function expectedOf({ source, plan, signal }: CopyOptions): Map<string, Checksum> {
  const expected = new Map<string, Checksum>()
  for (const kind of plan.kinds) {
    if (!source.has(kind.table)) continue
    for (const row of rowsOf(source, kind)) {
      signal?.throwIfAborted()
      for (const [name, documents] of Object.entries(kind.documents(row))) {
        const checksum = expected.get(name) ?? new Checksum()
        expected.set(name, checksum)
        for (const document of documents) checksum.add(document)
      }
    }
  }
  return expected
}

function differ(name: string, wanted: Checksum, found: Checksum): MigrationFailed {
  const how =
    wanted.count === found.count
      ? `differ in their checksum (${wanted.text.slice(0, 12)} and ${found.text.slice(0, 12)})`
      : `are ${found.count} instead of ${wanted.count}`
  return new MigrationFailed(
    `The documents in ${name} ${how}: the source has changed since an earlier run, or another program wrote into the target. ` +
      'Run the command again with --restart, which removes the copied documents and starts again.',
  )
}
