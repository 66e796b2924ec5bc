import { keyRotationOut, keyStatusOut } from '@parley/wire/codecs/parley/keys'
import type { KeyRotation, KeyStatus } from '@parley/wire/model/keys'
import { type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { openStoredKeys } from '../server/stored-keys.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'

interface KeysOptions extends ServerOptions {
  master?: true
  json?: true
}

const help = `
The gateway encrypts OAuth clients, sessions, tokens' data and its signing keys. The data keys are in the database,
encrypted with the master key: PARLEY_MASTER_KEY, or the file DATA_DIR/master.key, created at the first start. Back
the master key up separately from the data: nothing can be decrypted without it.

show             the master key and the number of records under each data key, without the keys
rotate           adds a data key and encrypts all records with it; continues a rotation that was interrupted
rotate --master  replaces the master key: the file is replaced; for PARLEY_MASTER_KEY, or with several gateways, prints
                 the steps

The command opens the store with the settings of the server. While a gateway with an embedded store runs, that gateway
executes it, for operators only (--token or PARLEY_TOKEN with agent:admin, else the operator client in DATA_DIR).`

export default function keysCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('keys'))
    .argument('[action]', 'show or rotate', 'show')
    .option('--master', 'with rotate: replace the master key')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', help)
    .run(async (action: string, options: KeysOptions) => {
      if (action !== 'show' && action !== 'rotate')
        throw new UsageError(`"${action}" is not one of show, rotate.`)
      if (action === 'show' && options.master) throw new UsageError('--master needs the action rotate.')
      await using keys = await openStoredKeys(io, options)
      if (action === 'show') return showStatus(io, await keys.status(), options)
      if (!options.json && !options.master) say(io, 'Encrypting all records with a new data key …')
      showRotation(io, await keys.rotate(options.master ? 'master' : 'data'), options)
    })
}

function showStatus(io: Io, status: KeyStatus, { json }: KeysOptions): void {
  if (json) return printJson(io, keyStatusOut(status))
  const { masterKey, dataKeys, otherRecords, files } = status
  print(io, `master key ${masterKey.id} (${masterKey.source})\n`)
  for (const id of masterKey.replaces)
    print(io, `  replaces ${id}: run "parley keys rotate --master" to complete it\n`)
  for (const { id, createdAt, current, records } of dataKeys) {
    const since = createdAt.slice(0, 10)
    print(io, `data key ${id}  since ${since}  ${records} records${current ? '  current' : ''}\n`)
  }
  if (otherRecords > 0) print(io, `${otherRecords} records in plaintext or under an unknown data key\n`)
  if (files.length > 0) print(io, `encrypted files: ${files.join(', ')}\n`)
}

function showRotation(io: Io, rotation: KeyRotation, { json }: KeysOptions): void {
  if (json) return printJson(io, keyRotationOut(rotation))
  const { rotated, continued, records, unreadable, steps, status } = rotation
  if (rotated === 'data') {
    const what = continued ? 'Completed an interrupted rotation' : 'Added a data key'
    print(io, `${what}: ${records} records were encrypted again, ${unreadable} cannot be decrypted.\n`)
  }
  if (rotated === 'master') print(io, 'The master key was replaced.\n')
  if (rotated === 'none' && steps.length === 0)
    print(io, 'Nothing was changed: there are no encrypted records, so there is no data key.\n')
  else if (rotated === 'none') print(io, 'Nothing was changed. To replace the master key:\n')
  for (const [index, step] of steps.entries())
    print(io, rotated === 'none' ? `${index + 1}. ${step}\n` : `${step}\n`)
  showStatus(io, status, {})
}
