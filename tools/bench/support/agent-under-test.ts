import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ServerProcess } from '../servers/server-process.ts'
import { httpRequest } from './load.ts'
import { cores, type Placement } from './machine.ts'
import { tokenOf } from './tokens.ts'

const root = path.join(import.meta.dirname, '../../..')

export interface AgentOptions {
  /** Default: the echo agent. */
  folder?: string
  nodeFlags?: string[]
  /** Additional settings. */
  env?: Record<string, string>
  /** Whether the OAuth server grants leases on introspection responses. Default true. */
  leases?: boolean
  /** Default: the agent has a core, and the OAuth server shares one with the load. */
  placement?: Placement
}

/** An agent, run as the supervisor would, with an OAuth server and its own store on the disk. */
export class AgentUnderTest implements AsyncDisposable {
  readonly server: ServerProcess
  readonly #open: AsyncDisposableStack

  private constructor(server: ServerProcess, open: AsyncDisposableStack) {
    this.server = server
    this.#open = open
  }

  static async start(options: AgentOptions = {}): Promise<AgentUnderTest> {
    await using stack = new AsyncDisposableStack()
    const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const free = options.placement === 'free'
    const oauth = stack.use(
      await ServerProcess.start({
        args: [`${import.meta.dirname}/../servers/oauth-process.ts`],
        core: free ? 'any' : cores.load,
        env: { LEASES: options.leases === false ? 'no' : 'yes' },
      }),
    )
    const server = stack.use(
      await ServerProcess.start({
        args: [
          '--disable-warning=ExperimentalWarning',
          path.join(root, 'shared/agent/server/agent-process.ts'),
          options.folder ?? path.join(import.meta.dirname, 'echo'),
        ],
        nodeFlags: options.nodeFlags ?? [],
        core: free ? 'any' : cores.server,
        env: {
          PORT: '0',
          LOG_LEVEL: 'info',
          // The server used for comparison does not limit requests either.
          RATE_LIMIT_PER_MINUTE: '0',
          DATA_DIR: dataDir,
          OAUTH_INTROSPECTION_URL: `${oauth.address}/introspect`,
          OAUTH_CLIENT_METADATA_URL: `${oauth.address}/clients/{client_id}`,
          AGENT_TOKEN_AUDIENCE: 'optional',
          OAUTH_CLIENT_ID: 'agent',
          OAUTH_CLIENT_SECRET: 'secret',
          ...options.env,
        },
      }),
    )
    return new AgentUnderTest(server, stack.move())
  }

  get address(): string {
    return this.server.address
  }

  /** One call with this token, outside the load. @throws Error with the response */
  async call(method: string, params: object, token = 0): Promise<string> {
    const response = await fetch(this.address, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokenOf(token)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    return text
  }

  /**
   * Waits until this many tasks have completed, according to the agent's metrics. @throws Error after some time without
   * progress
   */
  async waitForCompleted(expected: number): Promise<void> {
    const endsAt = Date.now() + 30_000
    let completed = -1
    while (Date.now() < endsAt) {
      completed = await this.#completed()
      if (completed === expected) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error(`${expected} tasks were accepted and ${completed} completed`)
  }

  async #completed(): Promise<number> {
    const metrics = await (await fetch(`${this.address}/metrics`)).text()
    const series = /^agent_tasks_completed_total\{[^}]*state="completed"[^}]*\} (\d+)$/m
    return Number(series.exec(metrics)?.[1] ?? 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }
}

/** The call with this token. */
export const callOf = (token: number, method: string, params: object) =>
  httpRequest({
    path: '/',
    headers: { Authorization: `Bearer ${tokenOf(token)}` },
    body: { jsonrpc: '2.0', id: '1', method, params },
  })

/** The same call with each of the first `tokens` tokens. */
export const callsOf = (tokens: number, method: string, params: object) =>
  Array.from({ length: tokens }, (_, token) => callOf(token, method, params))

export const text = 'The quick brown fox jumps over the lazy dog.'

export const sendParams = () => ({
  message: { role: 'user', kind: 'message', messageId: randomUUID(), parts: [{ kind: 'text', text }] },
})
