import path from 'node:path'
import { resolveAgent } from '@parley/agent/internal/author/agent'
import type { SkillDefinition } from '@parley/agent/internal/author/define-agent'
import type { LoadedAgent, LoadParts } from '@parley/agent/internal/server/run-agent'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { machineVariables } from '@parley/kit/process/machine-variables'
import { ConfigError } from '@parley/kit/process/settings'
import { cleanLine } from '@parley/wire/model/clean-text'
import { isTerminal } from '@parley/wire/model/task'
import { AgentUnreachable, InvalidAgentAnswer, messageWithCause } from '../client/agent-errors.ts'
import { cancelAtAgent } from '../handler/cancel-at-agent.ts'
import { ServerRefusedCredential } from '../mcp/http-transport.ts'
import { WaitingCalls } from '../mcp/open-call.ts'
import { HttpSessions, ProcessSessions, type Sessions } from '../mcp/sessions.ts'
import { toolRun } from '../mcp/tool-run.ts'
import { keywordsOf, type McpTool, readTools, wordsOf } from '../mcp/tools.ts'
import { type LinkStore, openLinks } from '../store/links.ts'
import { expanded, type Manifest, type ManifestSkill, readManifest } from './manifest.ts'

/** How often the list of tools is read, and how soon after the server has ended, at first and at most. */
const [readEveryMs, restartMs, restartMaxMs] = [30_000, 1000, 30_000]
const startMs = 60_000

/** Loads the agent of a folder with a manifest. Its server is started, and its tools are read. */
export async function loadManifestAgent(folder: string, { log, variables }: LoadParts): Promise<LoadedAgent> {
  const manifest = await readManifest(folder)
  if (manifest === undefined) throw new ConfigError([`${folder} contains no agent.yaml.`])
  await using stack = new AsyncDisposableStack()
  const sessions = stack.use(sessionsOf(manifest, { folder, log, variables }))
  const waiting = stack.use(new WaitingCalls())
  let tools = offeredTools(await firstTools(sessions, manifest), manifest)
  if (tools.length === 0) throw new ConfigError(['The MCP server offers no tools.'])
  let links: LinkStore | undefined
  let outputMaxBytes = 0
  const agent = resolveAgent({
    ...definitionOf(manifest, tools),
    deadlineMs: 3_600_000,
    handle: (context) => {
      if (links === undefined) throw new Error('The agent is not open yet')
      return toolRun(
        { entryId: 'mcp', tools: () => tools, sessions, waiting, links, outputMaxBytes },
        context,
      )
    },
  })
  const refresh = async () => {
    const before = JSON.stringify(tools)
    tools = offeredTools(await toolsAt(sessions), manifest)
    if (JSON.stringify(tools) === before || tools.length === 0) return false
    const { skills } = resolveAgent({ ...definitionOf(manifest, tools), handle: agent.handle })
    agent.skills.splice(0, agent.skills.length, ...skills)
    return true
  }
  const open = stack.move()
  return {
    agent,
    open: async ({ storeUrl, config }) => {
      links = open.use(await openLinks({ storeUrl, folder: config.storeDir }))
      outputMaxBytes = config.artifactMaxBytes
      const cancel = async (taskId: string, signal: AbortSignal) =>
        (await sessions.open('', signal)).cancelTask(taskId, signal)
      const canceled = cancelAtAgent({ entryId: 'mcp', client: { cancel }, links, log })
      return (before, after) => {
        if (isTerminal(after.status.state)) waiting.cancel(after.id)
        canceled(before, after)
      }
    },
    watch: (changed) => open.use(new ToolWatch({ sessions, refresh, changed, log })),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

interface Place {
  folder: string
  log: LoadParts['log']
  variables: NodeJS.ProcessEnv
}

function sessionsOf({ handler: { mcp } }: Manifest, { folder, log, variables }: Place): Sessions {
  const timing = { requestMs: startMs }
  if ('url' in mcp) {
    const { url, token, header: name } = mcp
    const value = token === undefined ? undefined : expanded(token, variables)
    const credential =
      value === undefined
        ? undefined
        : name === undefined
          ? { kind: 'bearer' as const, token: value }
          : { kind: 'apiKey' as const, in: 'header' as const, name, value }
    // The author of the folder chose the address.
    return new HttpSessions({ url, credential, allowed: parseAllowedHosts(new URL(url).hostname) }, timing)
  }
  const own = Object.entries(mcp.env).map(([name, value]) => [name, expanded(value, variables)] as const)
  return new ProcessSessions(
    {
      command: programOf(mcp.command, folder),
      args: mcp.args.map((one) => expanded(one, variables)),
      env: { ...systemVariables(variables), ...Object.fromEntries(own) },
      cwd: mcp.cwd === undefined ? folder : path.resolve(folder, mcp.cwd),
      log: (line) => log.info({ from: 'mcp server' }, cleanLine(line, 2000)),
    },
    timing,
  )
}

function programOf(command: string, folder: string): string {
  if (command === 'node') return process.execPath
  return command.startsWith('.') ? path.resolve(folder, command) : command
}

function systemVariables(variables: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    machineVariables.flatMap((name) => {
      const value = variables[name]
      return value === undefined ? [] : [[name, value] as const]
    }),
  )
}

async function toolsAt(sessions: Sessions): Promise<McpTool[]> {
  const session = await sessions.open('')
  return readTools(await session.listTools(), session.info.era === 'legacy')
}

/** @throws ConfigError with what to check in the manifest, because the author of the folder reads it */
async function firstTools(sessions: Sessions, { handler: { mcp } }: Manifest): Promise<McpTool[]> {
  try {
    return await toolsAt(sessions)
  } catch (error) {
    const isKnown =
      error instanceof AgentUnreachable ||
      error instanceof InvalidAgentAnswer ||
      error instanceof ServerRefusedCredential
    if (!isKnown) throw error
    if (error instanceof ServerRefusedCredential) throw new ConfigError([credentialFault(mcp)])
    const reason = messageWithCause(error).replace(/\.$/, '')
    throw new ConfigError([`The MCP server cannot be used: ${reason}. ${adviceOn(error, mcp)}`])
  }
}

function credentialFault(mcp: Manifest['handler']['mcp']): string {
  return 'token' in mcp && mcp.token !== undefined
    ? 'The MCP server does not accept the credential. Check handler.mcp.token, and handler.mcp.header if it expects another header.'
    : 'The MCP server requires a credential. Set handler.mcp.token, for example to "${MCP_TOKEN}", a variable of the environment.'
}

function adviceOn(error: Error, mcp: Manifest['handler']['mcp']): string {
  if ('url' in mcp) return 'Check that handler.mcp.url is the endpoint of a running MCP server.'
  if (error.cause instanceof Error && error.cause.message.startsWith('spawn '))
    return 'Check that the program of handler.mcp.command is installed, and that cwd exists.'
  const isNpx = path.basename(mcp.command) === 'npx'
  const output = 'What it wrote is in the log, with "from": "mcp server".'
  return isNpx
    ? `${output} In an isolated agent, npx cannot install packages: see agent-manifest.md.`
    : output
}

/** Applies the selection and the texts of the manifest. @throws ConfigError for a tool that the server does not offer */
function offeredTools(tools: McpTool[], { skills }: Manifest): McpTool[] {
  if (skills === undefined) return tools
  return skills.map(({ tool: name, ...own }) => {
    const tool = tools.find((one) => one.name === name)
    if (tool === undefined) {
      const names = tools.slice(0, 30).map((one) => one.name)
      throw new ConfigError([
        `agent.yaml: the server offers no tool ${name}. Its tools are ${names.join(', ')}.`,
      ])
    }
    return {
      ...tool,
      id: own.id ?? tool.id,
      title: own.name ?? tool.title,
      description: own.description ?? tool.description,
    }
  })
}

function definitionOf(manifest: Manifest, tools: readonly McpTool[]) {
  const { name, description, version, author, price, skills } = manifest
  const ownOf = (tool: McpTool) => skills?.find((one) => one.tool === tool.name)
  return {
    name,
    description,
    version,
    author,
    ...(price !== undefined && { executionCost: price }),
    skills: tools.map((tool) => skillDefinition(tool, ownOf(tool))),
  }
}

function skillDefinition(tool: McpTool, own: ManifestSkill | undefined): SkillDefinition {
  return {
    id: tool.id,
    name: tool.title,
    description: tool.description,
    tags: own?.tags ?? wordsOf(tool.name),
    ...(own?.examples !== undefined && { examples: own.examples }),
    inputModes: ['application/json', 'text/plain'],
    outputModes: ['text/plain', 'application/json'],
    inputSchema: tool.inputSchema,
    assessment: { keywords: keywordsOf(tool) },
    ...(own?.price !== undefined && { executionCost: own.price }),
  }
}

interface WatchOptions {
  sessions: Sessions
  /** Reads the tools. Resolves with whether they have changed. */
  refresh: () => Promise<boolean>
  changed: () => void
  log: LoadParts['log']
}

/** Reads the tools again from time to time, which also starts a server that has ended. */
class ToolWatch implements Disposable {
  readonly #options: WatchOptions
  #timer: NodeJS.Timeout
  #failures = 0

  constructor(options: WatchOptions) {
    this.#options = options
    this.#timer = this.#after(readEveryMs)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #after(ms: number): NodeJS.Timeout {
    return setTimeout(() => void this.#read(), ms).unref()
  }

  async #read(): Promise<void> {
    const { refresh, changed, log } = this.#options
    try {
      if (await refresh()) {
        log.info('the tools of the MCP server have changed')
        changed()
      }
      this.#failures = 0
    } catch (error) {
      this.#failures += 1
      log.warn({ err: error }, 'the tools of the MCP server could not be read')
    }
    const pauseMs = Math.min(restartMs * 2 ** (this.#failures - 1), restartMaxMs)
    this.#timer = this.#after(this.#failures === 0 ? readEveryMs : pauseMs)
  }
}
