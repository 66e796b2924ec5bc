import { type TestAgent, testAgent } from '@parley/agent/testing'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import {
  type ForeignAgent,
  type ForeignReply,
  type ForeignRequest,
  startForeignAgent,
} from '@parley/tools/testing/foreign-agent'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import { afterEach } from 'vitest'
import { A2aClient, type ClientLimits } from '../client/a2a-client.ts'
import { type LinkStore, openLinks } from '../store/links.ts'
import { relayedRun } from './relayed-run.ts'

/** A scripted foreign agent of A2A 1.0 behind an agent server with `relayedRun` as its handler. */

const disposables: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of disposables.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

/** The states of tasks in A2A 1.0, without their prefix. */
export type State =
  | 'SUBMITTED'
  | 'WORKING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELED'
  | 'REJECTED'
  | 'INPUT_REQUIRED'
  | 'AUTH_REQUIRED'
export const statusOf = (state: State, text?: string) => ({
  state: `TASK_STATE_${state}`,
  ...(text !== undefined && {
    message: { messageId: 'a-1', role: 'ROLE_AGENT', parts: [{ text }], taskId: 't-1', contextId: 'c-1' },
  }),
})
export const taskOf = (state: State, more: object = {}, text?: string) => ({
  id: 't-1',
  contextId: 'c-1',
  status: statusOf(state, text),
  ...more,
})
export const status = (state: State, text?: string) => ({
  statusUpdate: { taskId: 't-1', contextId: 'c-1', status: statusOf(state, text) },
})
export const chunk = (text: string, more: object = {}) => ({
  artifactUpdate: {
    taskId: 't-1',
    contextId: 'c-1',
    artifact: { artifactId: 'a', name: 'answer', metadata: { by: 'test' }, parts: [{ text }] },
    append: true,
    ...more,
  },
})

export type Script = (request: ForeignRequest, reply: ForeignReply) => void | Promise<void>

export async function relayed(
  script: Script,
  options: {
    streaming?: boolean
    dataDir?: string
    limits?: Partial<ClientLimits>
    deadlineMs?: number
    /** The address of the agent, if it is not the scripted one. */
    url?: string
    identityProvider?: TestAgent['identityProvider']
  } = {},
) {
  const { streaming = false, dataDir, limits, deadlineMs, url, identityProvider } = options
  const foreign: ForeignAgent = await startForeignAgent(script)
  disposables.push(foreign)
  const client = new A2aClient({
    url: url ?? foreign.url,
    dialect: dialectNamed('a2a-v1'),
    streaming,
    allowed: parseAllowedHosts('127.0.0.1'),
    limits: { repeatDelayMs: 5, ...limits },
  })
  const links: LinkStore = await openLinks(
    dataDir === undefined ? { storeUrl: 'memory:', folder: '' } : { storeUrl: undefined, folder: dataDir },
  )
  const relay = {
    entryId: 'foreign',
    client,
    links,
    streaming,
    outputMaxBytes: 100_000,
    timing: { pollMs: 20, pollMaxMs: 40, unreachableMaxMs: 200 },
  }
  const agent = await testAgent(
    { handle: (context) => relayedRun(relay, context), ...(deadlineMs !== undefined && { deadlineMs }) },
    {
      drainMs: 0,
      ...(dataDir === undefined ? { store: 'memory' as const } : { dataDir }),
      ...(identityProvider !== undefined && { identityProvider }),
    },
  )
  const stop = async () => {
    await agent.app[Symbol.asyncDispose]()
    await client[Symbol.asyncDispose]()
    await links[Symbol.asyncDispose]()
  }
  disposables.push({ [Symbol.asyncDispose]: stop })
  return { caller: agent.caller('alice'), foreign, agent, stop }
}
