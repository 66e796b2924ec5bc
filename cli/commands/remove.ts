import type { CliCommand } from '../cli-command.ts'
import type { Io } from '../io.ts'
import { removeEntryCommand } from '../operate.ts'

export default function removeCommand(io: Io): CliCommand {
  return removeEntryCommand(io)
}
