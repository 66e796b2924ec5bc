import type { CliCommand } from '../cli-command.ts'
import type { Io } from '../io.ts'
import { operatorCommand } from '../operate.ts'

export default function admitCommand(io: Io): CliCommand {
  return operatorCommand(io, 'admit')
}
