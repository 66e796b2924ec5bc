import { stat } from 'node:fs/promises'
import path from 'node:path'
import { agentFileOf, isManifest } from '@parley/kit/process/agent-file'
import { useAgentDataDir } from '../server/agent-data-dir.ts'
import { applyListenOptions, type ListenOptions, withListenOptions } from '../server/server-options.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import type { Io } from '../terminal/io.ts'

export default function agentCommand(io: Io): CliCommand {
  return withListenOptions(new CliCommand('agent'))
    .argument('<folder>', 'folder that holds the agent’s agent.ts or agent.yaml')
    .addHelpText(
      'after',
      `
Runs one agent as its own server until SIGINT or SIGTERM, then exits 0. Settings are read from the environment and
from .env in the working folder. GATEWAY_URL is the address of the gateway that the agent joins; with
OAUTH_INITIAL_TOKEN it registers its OAuth client there. Without a gateway, tokens are checked at OAUTH_ISSUER or
OAUTH_INTROSPECTION_URL with OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET.

Key, OAuth client and database are stored in DATA_DIR/agents/<folder name>, as with "parley up": the agent has the
same identity with both commands.`,
    )
    .run(async (folder: string, options: ListenOptions) => {
      const agentDir = path.resolve(io.cwd, folder)
      const there = await stat(agentDir).catch(() => undefined)
      if (there?.isDirectory() !== true) throw new UsageError(`${folder} is not a folder.`)
      applyListenOptions(io, options)
      // Under a supervisor, DATA_DIR is already the agent's own folder.
      if (process.channel === undefined) await useAgentDataDir(io, path.basename(agentDir))
      const { runAgent } = await import('@parley/agent/internal/server/run-agent')
      if (!isManifest(await agentFileOf(agentDir))) return runAgent(agentDir)
      const { loadManifestAgent } = await import('@parley/relay/manifest/manifest-agent')
      return runAgent(agentDir, loadManifestAgent)
    })
}
