import { CliCommand } from '../cli-command.ts'
import type { Io } from '../io.ts'
import { portOption } from '../port-option.ts'

export default function gatewayCommand(io: Io): CliCommand {
  return new CliCommand('gateway')
    .addOption(portOption())
    .addHelpText(
      'after',
      `
Starts no agents: those that run elsewhere register themselves. Runs until SIGINT or SIGTERM and exits 0.
Settings are read from the environment and from .env in the working folder.`,
    )
    .run(async (options: { port?: string }) => {
      if (options.port !== undefined) io.env.PORT = options.port
      const { runGateway } = await import('../../gateway/main.ts')
      return runGateway({ supervise: false })
    })
}
