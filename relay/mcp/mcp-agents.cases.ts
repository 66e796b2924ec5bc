import { testAgent } from '@parley/agent/testing'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import type { JsonObject } from '@parley/wire/model/task'
import { afterEach } from 'vitest'
import { openLinks } from '../store/links.ts'
import type { HttpServerOptions } from './http-transport.ts'
import { WaitingCalls } from './open-call.ts'
import type { SessionTiming } from './session.ts'
import { HttpSessions } from './sessions.ts'
import { toolRun } from './tool-run.ts'
import { readTools } from './tools.ts'

/** Agent servers with the tools of an MCP server as their handler. */

const disposables: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of disposables.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

/** Disposes the object after the test. */
export function disposed<T extends AsyncDisposable>(one: T): T {
  disposables.push(one)
  return one
}

export interface AgentOptions {
  limits?: Partial<HttpServerOptions>
  timing?: SessionTiming
  outputMaxBytes?: number
  dataDir?: string
}

export async function agentOf(url: string, options: AgentOptions = {}) {
  const { limits, timing, outputMaxBytes = 200_000, dataDir } = options
  const allowed = parseAllowedHosts('127.0.0.1')
  const sessions = disposed(new HttpSessions({ url, allowed, ...limits }, timing))
  const session = await sessions.open('list')
  const tools = { current: readTools(await session.listTools()) }
  const links = disposed(
    await openLinks(
      dataDir === undefined ? { storeUrl: 'memory:', folder: '' } : { storeUrl: undefined, folder: dataDir },
    ),
  )
  const waiting = new WaitingCalls()
  const agent = {
    entryId: 'server',
    tools: () => tools.current,
    sessions,
    waiting,
    links,
    outputMaxBytes,
    timing: { pollMs: 10, pollMaxMs: 20, unreachableMaxMs: 200, repeatDelayMs: 5 },
  }
  const started = disposed(
    await testAgent(
      {
        handle: (context) => toolRun(agent, context),
        skills: tools.current.map(({ id, title, description }) => ({ id, name: title, description })),
      },
      { drainMs: 0, ...(dataDir === undefined ? { store: 'memory' as const } : { dataDir }) },
    ),
  )
  /** Ends the agent as its process would. */
  const stop = async () => {
    await started[Symbol.asyncDispose]()
    await links[Symbol.asyncDispose]()
  }
  return { caller: started.caller('alice'), tools, session, stop }
}

/** Makes a message with data, and a text where there is one. */
export function message(skill: string | undefined, data: JsonObject | string, taskId?: string) {
  return {
    parts: [
      typeof data === 'string' ? { kind: 'text' as const, text: data } : { kind: 'data' as const, data },
    ],
    ...(skill !== undefined && { metadata: { skill_id: skill } }),
    ...(taskId !== undefined && { taskId }),
  }
}
