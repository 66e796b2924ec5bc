import { operatorCommand } from '../server/operate.ts'
import type { CliCommand } from '../terminal/cli-command.ts'
import type { Io } from '../terminal/io.ts'

export default function releaseCommand(io: Io): CliCommand {
  return operatorCommand(io, 'release')
}
