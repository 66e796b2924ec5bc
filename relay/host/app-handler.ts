import type { Handler, SkillDefinition } from '@parley/agent/internal/author/define-agent'
import type { CommitListener } from '@parley/engine/tasks/engine'
import type { RelayedAgent } from '@parley/kit/auth/relayed-agent'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import type { Log } from '@parley/kit/process/log'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import { isTerminal } from '@parley/wire/model/task'
import { A2aClient } from '../client/a2a-client.ts'
import { cancelAtAgent } from '../handler/cancel-at-agent.ts'
import { type RelayTiming, relayedRun } from '../handler/relayed-run.ts'
import { WaitingCalls } from '../mcp/open-call.ts'
import { HttpSessions } from '../mcp/sessions.ts'
import { toolRun } from '../mcp/tool-run.ts'
import { anyObject, type McpTool } from '../mcp/tools.ts'
import type { LinkStore } from '../store/links.ts'

/** The name of the protocol of MCP servers, where agents have a dialect. */
export const mcpDialect = 'mcp'

export interface HandlerParts {
  links: LinkStore
  /** Exceptions to the private-address guard. */
  allowed: AllowedHosts
  outputMaxBytes: number
  timing: Partial<RelayTiming> | undefined
  log: Log
}

/** Runs messages at a foreign agent. */
export interface AppHandler {
  handle: Handler
  committed: CommitListener
  /** Applies another list of tools. Absent if the app has to be opened again for changes. */
  changeTools?: (agent: RelayedAgent) => void
}

/** Returns the handler for an agent, which is closed with the stack. */
export function handlerOf(agent: RelayedAgent, parts: HandlerParts, stack: AsyncDisposableStack): AppHandler {
  return agent.dialect === mcpDialect ? mcpHandler(agent, parts, stack) : a2aHandler(agent, parts, stack)
}

function a2aHandler(agent: RelayedAgent, parts: HandlerParts, stack: AsyncDisposableStack): AppHandler {
  const { links, allowed, outputMaxBytes, timing, log } = parts
  const { id: entryId, url, streaming, credential } = agent
  const dialect = dialectNamed(agent.dialect)
  const client = stack.use(new A2aClient({ url, dialect, streaming, credential, allowed }))
  const relayed = {
    entryId,
    client,
    links,
    streaming,
    outputMaxBytes,
    ...(timing !== undefined && { timing }),
  }
  return {
    handle: (context) => relayedRun(relayed, context),
    committed: cancelAtAgent({ entryId, client, links, log }),
  }
}

function mcpHandler(agent: RelayedAgent, parts: HandlerParts, stack: AsyncDisposableStack): AppHandler {
  const { links, allowed, outputMaxBytes, log } = parts
  const { id: entryId, url, credential } = agent
  const sessions = stack.use(new HttpSessions({ url, credential, allowed }))
  const waiting = stack.use(new WaitingCalls())
  let tools = toolsOf(agent.skills)
  const server = { entryId, tools: () => tools, sessions, waiting, links, outputMaxBytes }
  const cancel = async (taskId: string, signal: AbortSignal) => {
    const session = await sessions.open('', signal)
    await session.cancelTask(taskId, signal)
  }
  const canceled = cancelAtAgent({ entryId, client: { cancel }, links, log })
  return {
    handle: (context) => toolRun(server, context),
    committed: (before, after) => {
      if (isTerminal(after.status.state)) waiting.cancel(after.id)
      canceled(before, after)
    },
    changeTools: ({ skills }) => {
      tools = toolsOf(skills)
    },
  }
}

function toolsOf(skills: RelayedAgent['skills']): McpTool[] {
  return skills.flatMap(({ id, name, description, inputSchema = anyObject, tool }) =>
    tool === undefined ? [] : [{ id, title: name, description, inputSchema, ...tool }],
  )
}

const mimeType = /^[\w.+*-]+\/[\w.+*-]+$/
const skillsMax = 1000

/** Returns the skills of the card with IDs and texts that our cards can have. */
export function skillsOf({ skills, name, description }: RelayedAgent): SkillDefinition[] {
  const read = new Map<string, SkillDefinition>()
  for (const skill of skills.slice(0, skillsMax)) {
    const id = skill.id.replace(/[^\w.-]/g, '-').slice(0, 128) || 'skill'
    const [inputModes, outputModes] = [skill.inputModes, skill.outputModes].map((modes) =>
      modes.filter((mode) => mimeType.test(mode)),
    )
    read.set(id, {
      id,
      name: skill.name.trim().slice(0, 200) || id,
      description: skill.description.trim().slice(0, 5000) || skill.name.trim() || id,
      tags: skill.tags.map((tag) => tag.slice(0, 1000)).slice(0, 500),
      ...(inputModes !== undefined && inputModes.length > 0 && { inputModes }),
      ...(outputModes !== undefined && outputModes.length > 0 && { outputModes }),
    })
  }
  if (read.size > 0) return [...read.values()]
  return [{ id: 'default', name: name.slice(0, 200), description: description.slice(0, 5000) || name }]
}
