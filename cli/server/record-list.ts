import type { CliCommand } from '../terminal/cli-command.ts'
import { sinceOf } from '../terminal/lifetime.ts'
import type { ServerOptions } from './server-connection.ts'

/** The options of commands that list records of the gateway by time. */
export interface RecordListOptions extends ServerOptions {
  since?: string
  until?: string
  limit: string
  cursor?: string
  json?: true
}

/** Adds the options of `RecordListOptions`. */
export function withRecordListOptions(command: CliCommand, what: string, limit: number): CliCommand {
  return command
    .option('--since <time>', `only ${what} at or after this time or in a period, such as 2h`, sinceOf)
    .option('--until <time>', `only ${what} before this time`)
    .option('--limit <count>', `number of ${what}`, String(limit))
    .option('--cursor <cursor>', 'continue a list')
    .option('--json', 'print the answer of the gateway as JSON')
}
