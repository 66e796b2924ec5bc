import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePorts } from '@parley/tools/testing/port'
import { Balancer } from './balancer.ts'
import { type CommandResult, ParleyProcess, parley, run } from './parley-process.ts'

/** Number of ports for two gateways and two processes of each agent. */
const portsCount = 16
const knownTimeoutMs = 60_000

/** The backends in which the deployments under test store their data. */
export interface Backends {
  /** `embedded` uses SQLite and one process of each kind; `full` uses MongoDB, Redis and several processes. */
  kind: 'embedded' | 'full'
  /** Settings for one deployment. In `full`, it gets a separate database and shares Redis with the others. */
  newStore(): Record<string, string>
}

/**
 * A supervised deployment: `npm start` with a separate DATA_DIR. With `full`, it runs two gateways behind a balancer
 * and two processes of each agent.
 */
export class Deployment {
  /** The address for clients. */
  readonly url: string
  readonly dataDir: string
  readonly #env: NodeJS.ProcessEnv
  readonly #balancer: Balancer | undefined
  readonly #process: ParleyProcess

  private constructor(
    port: number,
    env: NodeJS.ProcessEnv,
    dataDir: string,
    { balancer, agents }: { balancer: Balancer | undefined; agents: string | undefined },
  ) {
    this.url = balancer?.url ?? `http://127.0.0.1:${port}`
    this.dataDir = dataDir
    this.#env = env
    this.#balancer = balancer
    const several = balancer === undefined ? [] : ['--replicas', '2', '--gateways', '2']
    const options = [...several, ...(agents === undefined ? [] : ['--agents', agents])]
    const args = options.length === 0 ? [] : ['--', ...options]
    this.#process = new ParleyProcess({
      name: 'npm start',
      command: ['npm', 'start', '--silent'],
      args,
      port,
      env,
      // With an external OAuth server, there is no client for a `curl` line.
      readyOutput: env['OAUTH_ISSUER'] === undefined ? /^curl /m : /^gateway +ready/m,
    })
    if (balancer !== undefined) balancer.targets = [port]
  }

  /**
   * Resolves when `npm start` is ready and every gateway knows all agents.
   * @param agents folder of the agents. Default: `agents`
   */
  static async start(
    backends: Backends,
    settings: Record<string, string> = {},
    agents?: string,
  ): Promise<Deployment> {
    const dataDir = mkdtempSync(path.join(tmpdir(), 'parley-e2e-'))
    const port = await freePorts(portsCount)
    const balancer = backends.kind === 'full' ? await Balancer.start() : undefined
    const { NODE_ENV: _tests, ...inherited } = process.env
    const own = { DATA_DIR: dataDir, PORT: String(port), ...backends.newStore() }
    const publicUrl = balancer === undefined ? {} : { PUBLIC_URL: balancer.url }
    const env = { ...inherited, ...own, ...publicUrl, ...settings }
    const deployment = new Deployment(port, env, dataDir, { balancer, agents })
    try {
      await deployment.startAgain()
    } catch (error) {
      await deployment.remove()
      throw error
    }
    return deployment
  }

  /** Starts the deployment. After `stop`, it uses the data of the first start. */
  async startAgain(): Promise<void> {
    await this.#process.start()
    if (this.#balancer === undefined) {
      if (this.#env['OAUTH_ISSUER'] !== undefined) await untilAgentsAreReady(this.url)
      return
    }
    await Promise.all(this.gateways.map(untilAgentsAreReady))
    this.#balancer.targets = this.gateways.map((url) => Number(new URL(url).port))
  }

  /** The addresses of the gateways. The first one runs the agents. */
  get gateways(): string[] {
    return [...this.output.matchAll(/^gateway +ready +(\S+)/gm)].map(([, url]) => url ?? '')
  }

  get output(): string {
    return this.#process.output
  }

  /** The command for trying an agent that `npm start` prints. */
  get curlLine(): string {
    return /^curl .*$/m.exec(this.output)?.[0] ?? ''
  }

  /** Runs a `parley` command with the settings of the deployment. */
  parley(...args: string[]): Promise<CommandResult> {
    return parley(args, { env: this.#env })
  }

  shell(line: string): Promise<CommandResult> {
    return run(['sh', '-c', line], { env: this.#env })
  }

  /** Sends SIGTERM. Resolves with the exit code. */
  stop(): Promise<number | null> {
    return this.#process.stop()
  }

  /** Kills every process and deletes the data. */
  async remove(): Promise<void> {
    for (const pid of this.processes()) kill(pid)
    await this.#process[Symbol.asyncDispose]()
    await this.#balancer?.[Symbol.asyncDispose]()
    rmSync(this.dataDir, { recursive: true, force: true })
  }

  /** Ids of the running processes of this deployment. */
  processes(): number[] {
    return globSync('/proc/[0-9]*/environ').flatMap((file) => {
      try {
        const isOwn = readFileSync(file, 'utf8').includes(`DATA_DIR=${this.dataDir}`)
        return isOwn ? [Number(file.split('/')[2])] : []
      } catch {
        return []
      }
    })
  }
}

/** Gateways exchange their state within two seconds. */
async function untilAgentsAreReady(gateway: string): Promise<void> {
  for (const end = Date.now() + knownTimeoutMs; Date.now() < end; await wait(50)) {
    const response = await fetch(`${gateway}/registry/agents`).catch(() => undefined)
    const { agents = [] } = ((await response?.json()) ?? {}) as { agents?: { status: string }[] }
    if (agents.length > 0 && agents.every(({ status }) => status === 'ready')) return
  }
  throw new Error(`${gateway} does not know all agents`)
}

/** Kills a process, which may have ended since it was listed. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
