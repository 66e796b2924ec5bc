import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ServerProcess } from './server-process.ts'

const root = path.join(import.meta.dirname, '../..')
const idleLimitMs = 120_000

/** Several processes of the echo agent, wherever the system puts them, with an OAuth server beside them. */
export class AgentProcesses implements AsyncDisposable {
  readonly addresses: string[]
  readonly #open: AsyncDisposableStack

  private constructor(addresses: string[], open: AsyncDisposableStack) {
    this.addresses = addresses
    this.#open = open
  }

  /** @param env DATA_DIR, STORE_URL and REDIS_URL, which they share */
  static async start(count: number, env: Record<string, string>): Promise<AgentProcesses> {
    await using stack = new AsyncDisposableStack()
    const oauthArgs = [`${import.meta.dirname}/oauth-process.ts`]
    const oauth = stack.use(await ServerProcess.start({ args: oauthArgs, core: 'any' }))
    const addresses: string[] = []
    for (let number = 0; number < count; number += 1) {
      const agent = await ServerProcess.start({
        args: [
          '--disable-warning=ExperimentalWarning',
          path.join(root, 'shared/agent-process.ts'),
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
      addresses.push(stack.use(agent).address)
    }
    return new AgentProcesses(addresses, stack.move())
  }

  /** Until no task waits or runs, by the agents' own metrics, twice in a row. @throws Error when that does not come */
  async idle(): Promise<void> {
    let quiet = 0
    for (const end = Date.now() + idleLimitMs; Date.now() < end; await wait(250)) {
      const active = await Promise.all(this.addresses.map(activeAt))
      quiet = active.every((count) => count === 0) ? quiet + 1 : 0
      if (quiet === 2) return
    }
    throw new Error('the tasks do not come to an end')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }
}

async function activeAt(address: string): Promise<number> {
  const metrics = await (await fetch(`${address}/metrics`)).text()
  const counts = [...metrics.matchAll(/^agent_tasks_active\{[^}]*\} (\d+)$/gm)].map(([, count]) =>
    Number(count),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}
