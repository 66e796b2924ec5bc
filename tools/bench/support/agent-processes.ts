import path from 'node:path'
import { ServerProcess } from '../servers/server-process.ts'

const root = path.join(import.meta.dirname, '../../..')

/** Several processes of the echo agent, on any core, with an OAuth server. */
export class AgentProcesses implements AsyncDisposable {
  readonly addresses: string[]
  readonly #agents: ServerProcess[]
  readonly #open: AsyncDisposableStack

  private constructor(agents: ServerProcess[], open: AsyncDisposableStack) {
    this.addresses = agents.map(({ address }) => address)
    this.#agents = agents
    this.#open = open
  }

  /** CPU time of each process, without the OAuth server. */
  get cpuMicros(): number[] {
    return this.#agents.map(({ cpuMicros }) => cpuMicros)
  }

  /** @param env DATA_DIR, STORE_URL and REDIS_URL, shared by all processes */
  static async start(count: number, env: Record<string, string>): Promise<AgentProcesses> {
    await using stack = new AsyncDisposableStack()
    const oauthArgs = [`${import.meta.dirname}/../servers/oauth-process.ts`]
    const oauth = stack.use(await ServerProcess.start({ args: oauthArgs, core: 'any' }))
    const agents: ServerProcess[] = []
    for (let number = 0; number < count; number += 1) {
      const agent = await ServerProcess.start({
        args: [
          '--disable-warning=ExperimentalWarning',
          path.join(root, 'shared/agent/server/agent-process.ts'),
          path.join(import.meta.dirname, 'echo'),
        ],
        core: 'any',
        env: {
          PORT: '0',
          LOG_LEVEL: 'info',
          RATE_LIMIT_PER_MINUTE: '0',
          OAUTH_INTROSPECTION_URL: `${oauth.address}/introspect`,
          OAUTH_CLIENT_METADATA_URL: `${oauth.address}/clients/{client_id}`,
          OAUTH_CLIENT_ID: 'agent',
          OAUTH_CLIENT_SECRET: 'secret',
          ...env,
        },
      })
      agents.push(stack.use(agent))
    }
    return new AgentProcesses(agents, stack.move())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }
}
