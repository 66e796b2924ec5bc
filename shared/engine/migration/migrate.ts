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

/** One embedded database that moves as a whole: an agent's, or the gateway's. */
export interface Part {
  name: string
  /** `agent_id` of its documents. */
  scope: string
  file: string
  /** Schema of the embedded database. */
  migrations: readonly string[]
  /** Schema of the target. */
  schema: { name: string; indexes: Record<string, Index[]>; migrations: readonly Migration[] }
  plan: (store: MongoContext, source: SqliteSource) => Plan
}

export interface MigrateOptions {
  /** `mongodb://…/database`. */
  url: string
  dryRun?: boolean
  /** Removes what an earlier run copied, and begins anew. */
  restart?: boolean
  signal?: AbortSignal
  onProgress?: (name: string, progress: Progress) => void
}

/** What became of a part. */
export interface PartReport {
  name: string
  scope: string
  /** `already`: an earlier run brought it to its end, and nothing was touched now. */
  state: 'would migrate' | 'migrated' | 'already'
  /** Rows of the source, by kind. */
  rows: Record<string, number>
  /** Documents of the target, by collection; both sides were read again and are the same. */
  verified: Record<string, Verified>
}

export function agentPart({ name, agentId, file }: FoundAgent): Part {
  const schema = { name: 'agent_store', indexes: agentIndexes, migrations: agentMigrations }
  return { name, scope: agentId, file, migrations: sqliteMigrations, schema, plan: agentPlan }
}

/**
 * Moves the parts, one after the other; each is locked from the beginning, so that no server can change it. One that is
 * killed goes on where it was, when it is started again. Servers refuse a part as long as it is not whole.
 * @throws DatabaseRefused when a source is in use or a newer version wrote one of the databases
 * @throws MigrationFailed
 */
export async function migrate(parts: Part[], options: MigrateOptions): Promise<PartReport[]> {
  await using stack = new AsyncDisposableStack()
  const sources = new Map<Part, SqliteSource>()
  for (const part of parts) sources.set(part, stack.use(await openSource(part.file, part.migrations)))
  // Nothing is copied where another part would be refused afterwards.
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
  // What `--restart` removes is what a migration brought; what servers wrote there themselves is not its to remove.
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
    `The target has data of ${name} that no migration brought there. Name an empty database, or start the servers with it as it is.`,
  )

const inUse = (name: string) =>
  new MigrationFailed(
    `The migration of ${name} is over, and servers may have written to the target since: --restart would remove that too. ` +
      'Name another database.',
  )
