import { existsSync } from 'node:fs'
import path from 'node:path'
import { MigrationFailed } from '@parley/engine/migration/copy'
import { findAgents } from '@parley/engine/migration/find-agents'
import { agentPart, migrate, type Part, type PartReport } from '@parley/engine/migration/migrate'
import { clientSettings } from '../server/environment.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import { interruption } from '../terminal/interrupt.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'
import { progressLines, reportLines } from '../terminal/migration-view.ts'

interface MigrateOptions {
  from: string
  to?: string
  dryRun?: true
  restart?: true
  json?: true
}

const help = `
Moves all data of the agents and the gateway in the folder (agents/<name>/agent.db, gateway.db) to the database, then
compares counts and checksums of both sides. Stop the server first. The source remains unchanged.

After Ctrl-C or a crash, run it again to continue where it stopped. Until it has finished, servers refuse to
use the database. Keys are not moved: start the servers with the same DATA_DIR and STORE_URL=mongodb://…`

export default function migrateCommand(io: Io): CliCommand {
  return new CliCommand('migrate')
    .requiredOption('--from <source>', 'sqlite:<folder>, the data folder of the server')
    .option(
      '--to <target>',
      'mongodb://host:27017/database (default STORE_URL, where a password is not seen by others)',
    )
    .option('--dry-run', 'show what would be moved without changing anything')
    .option('--restart', 'remove what an earlier run copied and start over')
    .option('--json', 'print what was moved as JSON')
    .addHelpText('after', help)
    .run((options: MigrateOptions) => run(io, options))
}

async function run(io: Io, options: MigrateOptions): Promise<void> {
  const folder = sourceOf(io, options.from)
  const url = options.to ?? io.env['STORE_URL'] ?? ''
  if (!/^mongodb(\+srv)?:\/\//.test(url))
    throw new UsageError('--to must be like mongodb://host:27017/database.')
  const parts = await partsIn(folder, clientSettings(io).dataDir)
  using interrupted = interruption()
  const began = performance.now()
  const reports = await migrate(parts, {
    url,
    dryRun: options.dryRun === true,
    restart: options.restart === true,
    signal: interrupted.signal,
    ...(options.json !== true && { onProgress: progressLines((line) => say(io, line)) }),
  }).catch((thrown: unknown) => {
    throw interrupted.signal.aborted
      ? new MigrationFailed('Stopped. Run it again to continue where it stopped.')
      : thrown
  })
  const seconds = (performance.now() - began) / 1000
  if (options.json === true) return printJson(io, { ...jsonOf(reports), seconds: Number(seconds.toFixed(1)) })
  for (const line of reportLines(reports, seconds)) print(io, `${line}\n`)
}

/** @throws UsageError */
function sourceOf(io: Io, from: string): string {
  const folder = from.startsWith('sqlite:') ? path.resolve(io.cwd, from.slice('sqlite:'.length)) : undefined
  if (folder === undefined || from === 'sqlite:') throw new UsageError('--from must be like sqlite:.parley')
  if (!existsSync(folder)) throw new UsageError(`There is no folder ${folder}.`)
  return folder
}

async function partsIn(folder: string, dataDir: string): Promise<Part[]> {
  const parts = (await findAgents(folder, dataDir)).map(agentPart)
  const gateway = path.join(folder, 'gateway.db')
  if (existsSync(gateway)) {
    const { gatewayPart } = await import('@parley/gateway/migration')
    parts.push(gatewayPart(gateway))
  }
  if (parts.length === 0)
    throw new UsageError(`There is nothing to move in ${folder}: no agents/<name>/agent.db, no gateway.db.`)
  return parts
}

function jsonOf(reports: PartReport[]) {
  const parts = reports.map(({ name, scope, state, rows, verified }) => ({
    name,
    agent_id: scope,
    state,
    rows,
    verified,
  }))
  return { parts }
}
