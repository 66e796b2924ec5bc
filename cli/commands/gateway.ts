import { applyListenOptions, type ListenOptions, withListenOptions } from '../server/server-options.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import type { Io } from '../terminal/io.ts'

export default function gatewayCommand(io: Io): CliCommand {
  return withListenOptions(new CliCommand('gateway'))
    .addHelpText(
      'after',
      `
Starts no agents; agents that run elsewhere register themselves. Runs until SIGINT or SIGTERM and exits 0.
Settings are read from the environment and from .env in the working folder.`,
    )
    .run(async (options: ListenOptions) => {
      applyListenOptions(io, options)
      const { runGateway } = await import('@parley/gateway/main')
      return runGateway({ supervise: false })
    })
}
