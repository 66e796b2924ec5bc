import { removeEntryCommand } from '../server/operate.ts'
import type { CliCommand } from '../terminal/cli-command.ts'
import type { Io } from '../terminal/io.ts'

export default function removeCommand(io: Io): CliCommand {
  return removeEntryCommand(io)
}
