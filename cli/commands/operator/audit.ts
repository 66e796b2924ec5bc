import { auditList } from '@parley/wire/codecs/answers/operator/records'
import { whoMay } from '../../server/operate.ts'
import { operatorApi, pathWith } from '../../server/operator-api.ts'
import { type RecordListOptions, withRecordListOptions } from '../../server/record-list.ts'
import { withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { type Io, print, printJson, say } from '../../terminal/io.ts'
import { oneLine } from '../../terminal/printable.ts'

interface AuditOptions extends RecordListOptions {
  who?: string
  action?: string
  target?: string
  refused?: true
}

export default function auditCommand(io: Io): CliCommand {
  const command = withServerOptions(new CliCommand('audit'))
    .option('--who <client>', 'only what this client did')
    .option('--action <action>', 'only this action, or a beginning such as oauth.*')
    .option('--target <target>', 'only what was done to this object')
    .option('--refused', 'only refusals')
  return withRecordListOptions(command, 'entries', 50)
    .addHelpText(
      'after',
      `
Lists who did what, newest first: accesses that were refused, changes in the registry and in the OAuth server, sign-ins
(--action console.sign_in), and looks of operators at the texts of others (--action operator.read_texts).
${whoMay}`,
    )
    .members({ limit: '--limit', since: '--since', until: '--until' })
    .run((options: AuditOptions) => list(io, options))
}

async function list(io: Io, options: AuditOptions): Promise<void> {
  const { json, refused, url: _url, token: _token, ...query } = options
  const api = await operatorApi(io, options)
  const path = pathWith('/operator/audit', { ...query, ...(refused && { allowed: false }) })
  const page = await api.send(auditList, path)
  if (json) return printJson(io, page)
  for (const { at, who, address, action, target, allowed, reason } of page.entries) {
    const whom = oneLine(who ?? address ?? '-', 120)
    const what = [oneLine(action, 80), ...(target === null ? [] : [oneLine(target, 120)])].join(' ')
    const why = reason === null ? '' : ` (${oneLine(reason, 160)})`
    print(io, `${at.slice(0, 19)}Z ${allowed ? 'allowed' : 'refused'} ${whom}\n    ${what}${why}\n`)
  }
  if (page.entries.length === 0) print(io, 'No entries.\n')
  if (page.next_cursor !== null) say(io, `More: add --cursor ${page.next_cursor}`)
}
