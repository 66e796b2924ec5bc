import { checkAgent } from '../server/check-agent.ts'
import { clientSettings } from '../server/environment.ts'
import { tokenSource } from '../server/token-source.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'

interface CheckOptions {
  token?: string
  json?: true
}

export default function checkCommand(io: Io): CliCommand {
  return new CliCommand('check')
    .argument('<agent url>', 'address of the agent')
    .option(
      '--token <token>',
      'send it one task as well (default: one of the development client, to its own server alone)',
    )
    .option('--json', 'print the findings as JSON')
    .addHelpText(
      'after',
      `
Says line by line what is well and what to mend. Exit codes: 0 all is well; 1 something is to be mended; 2 wrong use.`,
    )
    .run((url: string, options: CheckOptions) => check(io, url, options))
}

async function check(io: Io, url: string, options: CheckOptions): Promise<number> {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`It must be an http or https address, not "${url}".`)
  // PARLEY_TOKEN is for the server of the settings: it does not go to whatever address is typed here.
  const { dataDir } = clientSettings(io)
  const token = await tokenSource({ dataDir, token: options.token, url, as: 'developer' })
  const findings = await checkAgent(url, await token?.().catch(() => undefined))
  if (options.json) printJson(io, findings)
  else {
    for (const { what, mend, note } of findings) {
      const mark = mend === undefined ? (note === undefined ? 'ok  ' : '–   ') : 'MEND'
      print(io, `${mark}  ${what.padEnd(16)}  ${oneLine(mend ?? note ?? '', 300)}`.trimEnd().concat('\n'))
    }
  }
  return findings.some(({ mend }) => mend !== undefined) ? 1 : 0
}
