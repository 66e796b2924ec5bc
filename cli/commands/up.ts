import { stat } from 'node:fs/promises'
import path from 'node:path'
import { applyListenOptions, type ListenOptions, withListenOptions } from '../server/server-options.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import type { Io } from '../terminal/io.ts'
import { wholeNumber } from '../terminal/whole-number.ts'

const processesMax = 64

function processes(text: string): number {
  const count = wholeNumber(processesMax)(text)
  if (count === 0) throw new UsageError('The number must be at least 1.')
  return count
}

interface UpOptions extends ListenOptions {
  agents: string
  replicas: number
  gateways: number
}

export default function upCommand(io: Io): CliCommand {
  return withListenOptions(new CliCommand('up'))
    .option('--agents <folder>', 'folder with one subfolder per agent', 'agents')
    .option(
      '--replicas <n>',
      'processes of each agent (needs STORE_URL=mongodb://… and REDIS_URL)',
      processes,
      1,
    )
    .option(
      '--gateways <n>',
      'number of gateways, on consecutive ports (needs the same settings)',
      processes,
      1,
    )
    .addHelpText(
      'after',
      `
Runs until SIGINT or SIGTERM, gives running tasks time to finish, stops every agent and exits 0. Settings are read
from the environment and from .env in the working folder. Keys, databases and dev-client.json are stored in DATA_DIR.

Agents are isolated from the gateway and from each other. The table names the mode and what is missing: run as root on
Linux for a user per agent, or enable user namespaces. AGENT_ISOLATION demands a mode (docs/guides/isolation.md).`,
    )
    .run((options: UpOptions) => up(io, options))
}

async function up(io: Io, options: UpOptions): Promise<number> {
  const agentsDir = path.resolve(io.cwd, options.agents)
  const there = await stat(agentsDir).catch(() => undefined)
  if (there?.isDirectory() !== true) {
    throw new CommandFailed(`There is no folder ${agentsDir}. Create an agent with "npx parley new hello".`)
  }
  applyListenOptions(io, options)
  const { runGateway } = await import('@parley/gateway/main')
  return runGateway({ supervise: true, agentsDir, replicas: options.replicas, gateways: options.gateways })
}
