import {
  agentIndexes,
  agentMigrations,
  type Index,
  type Migration,
} from '@parley/kit/database/mongodb/schema'
import { openImportTarget } from '../store/mongodb/import.ts'
import type { MongoContext } from '../store/mongodb/record.ts'
import { agentMigrations as sqliteMigrations } from '../store/sqlite/schema.ts'
import { openSource, type SqliteSource } from '../store/sqlite/source.ts'
import { agentPlan } from './agent-kinds.ts'
import { copy, countRows, MigrationFailed, type Progress, type Verified, verify } from './copy.ts'
import type { FoundAgent } from './find-agents.ts'
import type { Plan } from './kind.ts'

/** An embedded database that is copied as a whole. It belongs to an agent or to the gateway. */
export interface Part {
  name: string
  /** The `agent_id` of its documents. */
  scope: string
  file: string
  /** The schema of the embedded database. */
  migrations: readonly string[]
  /** The schema of the target. */
  schema: { name: string; indexes: Record<string, Index[]>; migrations: readonly Migration[] }
  plan: (store: MongoContext, source: SqliteSource) => Plan
}

export interface MigrateOptions {
  /** For example `mongodb://…/database`. */
  url: string
  dryRun?: boolean
  /** Removes the documents of an earlier run and starts over. */
  restart?: boolean
  signal?: AbortSignal
  onProgress?: (name: string, progress: Progress) => void
}

/** The result for one part. */
export interface PartReport {
  name: string
  scope: string
  /** `already`: an earlier run completed this part, so nothing was changed. */
  state: 'would migrate' | 'migrated' | 'already'
  /** The number of rows in the source, by kind. */
  rows: Record<string, number>
  /** The target's documents by collection, after both sides were read again and compared. */
  verified: Record<string, Verified>
}

export function agentPart({ name, agentId, file }: FoundAgent): Part {
  const schema = { name: 'agent_store', indexes: agentIndexes, migrations: agentMigrations }
  return { name, scope: agentId, file, migrations: sqliteMigrations, schema, plan: agentPlan }
}

/**
 * Copies the parts one after the other. Each source is locked from the beginning, so that no server can
 * change it. An interrupted migration continues when it is run again; until it is complete, servers refuse
 * the target.
 * @throws DatabaseRefused when a source is in use or a newer version wrote one of the databases
 * @throws MigrationFailed
 */
export async function migrate(parts: Part[], options: MigrateOptions): Promise<PartReport[]> {
  await using stack = new AsyncDisposableStack()
  const sources = new Map<Part, SqliteSource>()
  for (const part of parts) sources.set(part, stack.use(await openSource(part.file, part.migrations)))
  // Checks every part before copying the first one.
  for (const [part, source] of sources) await migratePart(part, source, { ...options, dryRun: true })
  const reports: PartReport[] = []
  for (const [part, source] of sources) reports.push(await migratePart(part, source, options))
  return reports
}

async function migratePart(part: Part, source: SqliteSource, options: MigrateOptions): Promise<PartReport> {
  const { name, scope, schema } = part
  const { url, restart = false, signal, onProgress } = options
  await using target = await openImportTarget({ url, scope, schema })
  const plan = part.plan(target.store, source)
  const rows = countRows({ source, plan })
  const state = await target.state()
  if (state === 'done' && !restart) return { name, scope, state: 'already', rows, verified: {} }
  // `--restart` removes only documents that a migration copied, never documents that servers wrote.
  if (state === 'none' && (await target.holdsAny(plan.work))) throw notEmpty(name)
  if (state === 'done' && restart) throw inUse(name)
  if (options.dryRun === true) return { name, scope, state: 'would migrate', rows, verified: {} }
  await target.begin(plan.collections, restart)
  const tell = onProgress && ((progress: Progress) => onProgress(name, progress))
  const doing = { source, target, plan, ...(signal && { signal }), ...(tell && { onProgress: tell }) }
  await copy(doing)
  const verified = await verify(doing)
  await target.finish()
  return { name, scope, state: 'migrated', rows, verified }
}

const notEmpty = (name: string) =>
  new MigrationFailed(
    `The target has data of ${name} that no migration copied. Name an empty database, or start the servers with this one.`,
  )

const inUse = (name: string) =>
  new MigrationFailed(
    `The migration of ${name} is complete, and servers may have written to the target since then: --restart would remove that data too. ` +
      'Name another database.',
  )
