import { stat } from 'node:fs/promises'
import path from 'node:path'
import { CliCommand } from '../cli-command.ts'
import { UsageError } from '../faults.ts'
import type { Io } from '../io.ts'
import { applyListenOptions, type ListenOptions, withListenOptions } from '../server-options.ts'

export default function agentCommand(io: Io): CliCommand {
  return withListenOptions(new CliCommand('agent'))
    .argument('<folder>', 'folder that holds the agent’s agent.ts')
    .addHelpText(
      'after',
      `
Runs one agent as its own server until SIGINT or SIGTERM, then exits 0. Settings are read from the environment and
from .env in the working folder. Every request is checked at the OAuth server of OAUTH_ISSUER or
OAUTH_INTROSPECTION_URL with OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET.`,
    )
    .run(async (folder: string, options: ListenOptions) => {
      const agentDir = path.resolve(io.cwd, folder)
      const there = await stat(agentDir).catch(() => undefined)
      if (there?.isDirectory() !== true) throw new UsageError(`${folder} is not a folder.`)
      applyListenOptions(io, options)
      const { runAgent } = await import('../../shared/run-agent.ts')
      return runAgent(agentDir)
    })
}
