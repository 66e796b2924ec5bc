import { stat } from 'node:fs/promises'
import path from 'node:path'
import { CliCommand } from '../cli-command.ts'
import { CommandFailed } from '../faults.ts'
import type { Io } from '../io.ts'
import { applyListenOptions, type ListenOptions, withListenOptions } from '../server-options.ts'

interface UpOptions extends ListenOptions {
  agents: string
}

export default function upCommand(io: Io): CliCommand {
  return withListenOptions(new CliCommand('up'))
    .option('--agents <folder>', 'folder that holds one folder per agent', 'agents')
    .addHelpText(
      'after',
      `
Runs until SIGINT or SIGTERM, lets running tasks finish for a while, stops every agent and exits 0. Settings are read
from the environment and from .env in the working folder. Keys, databases and dev-client.json are kept in DATA_DIR.`,
    )
    .run((options: UpOptions) => up(io, options))
}

async function up(io: Io, options: UpOptions): Promise<number> {
  const agentsDir = path.resolve(io.cwd, options.agents)
  const there = await stat(agentsDir).catch(() => undefined)
  if (there?.isDirectory() !== true) {
    throw new CommandFailed(`There is no folder ${agentsDir}. "npx parley new hello" makes a first agent.`)
  }
  applyListenOptions(io, options)
  const { runGateway } = await import('../../gateway/main.ts')
  return runGateway({ supervise: true, agentsDir })
}
