import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePorts } from '@parley/tools/testing/port'
import { Balancer } from './balancer.ts'
import type { Standing } from './standing.ts'

const root = path.resolve(import.meta.dirname, '..')

/** What a command printed, and how it ended. */
export interface Ran {
  code: number
  stdout: string
  stderr: string
}

interface HouseParts {
  port: number
  dataDir: string
  env: NodeJS.ProcessEnv
  balancer: Balancer | undefined
}

/**
 * A house started by `npm start` as a stranger would, in a DATA_DIR of its own. In the project `full` it is two gateways
 * behind a balancer, and two processes of each agent.
 */
export class House {
  /** Where clients find it. */
  readonly url: string
  readonly dataDir: string
  readonly output: string[] = []
  readonly #env: NodeJS.ProcessEnv
  readonly #balancer: Balancer | undefined
  #process: ChildProcess
  #exited: Promise<number | null>

  private constructor({ port, dataDir, env, balancer }: HouseParts) {
    this.url = balancer?.url ?? `http://127.0.0.1:${port}`
    this.dataDir = dataDir
    this.#env = env
    this.#balancer = balancer
    if (balancer !== undefined) balancer.targets = [port]
    this.#process = this.#spawn()
    this.#exited = exitOf(this.#process)
  }

  #spawn(): ChildProcess {
    const several = this.#balancer === undefined ? [] : ['--', '--replicas', '2', '--gateways', '2']
    const child = spawn('npm', ['start', '--silent', ...several], {
      cwd: root,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => this.output.push(chunk.toString()))
    }
    return child
  }

  async #ready(): Promise<void> {
    await until(
      () => /^curl /m.test(this.output.join('')),
      150_000,
      () => this.output.join(''),
    )
    if (this.#balancer === undefined) return
    const gateways = [...this.output.join('').matchAll(/^gateway +ready +(\S+)/gm)].map(
      ([, url]) => url ?? '',
    )
    await Promise.all(gateways.map(knowsAllAgents))
    this.#balancer.targets = gateways.map((url) => Number(new URL(url).port))
  }

  /** After a stop: the same house, with what it has kept. */
  async startAgain(): Promise<void> {
    this.output.length = 0
    this.#process = this.#spawn()
    this.#exited = exitOf(this.#process)
    await this.#ready()
  }

  /** Resolves when the house has printed its `curl` line. */
  static async start(standing: Standing, more: Record<string, string> = {}): Promise<House> {
    const dataDir = mkdtempSync(path.join(tmpdir(), 'parley-e2e-'))
    // Its own, another gateway's, and those of two processes of each agent.
    const port = await freePorts(16)
    const balancer = standing.kind === 'full' ? await Balancer.start() : undefined
    const { NODE_ENV: _ours, ...env } = process.env
    const own = { DATA_DIR: dataDir, PORT: String(port), ...standing.newStore() }
    const shown = balancer === undefined ? {} : { PUBLIC_URL: balancer.url }
    const house = new House({ port, dataDir, env: { ...env, ...own, ...shown, ...more }, balancer })
    try {
      await house.#ready()
    } catch (error) {
      await house.remove()
      throw error
    }
    return house
  }

  /** The line that `npm start` offers to paste. */
  get curlLine(): string {
    return /^curl .*$/m.exec(this.output.join(''))?.[0] ?? ''
  }

  /** A command of the command line, as `npx parley` runs it in the clone. */
  parley(...args: string[]): Promise<Ran> {
    return run(process.execPath, [path.join(root, 'cli', 'bin.mjs'), ...args], this.#env)
  }

  shell(line: string): Promise<Ran> {
    return run('sh', ['-c', line], this.#env)
  }

  /** As `interfaces` promise: SIGTERM, drain, exit code. */
  async stop(): Promise<number | null> {
    this.#process.kill('SIGTERM')
    return this.#exited
  }

  /** For the end of a test, whatever happened. */
  async remove(): Promise<void> {
    for (const pid of this.processes()) process.kill(pid, 'SIGKILL')
    await this.#exited
    await this.#balancer?.[Symbol.asyncDispose]()
    rmSync(this.dataDir, { recursive: true, force: true })
  }

  /** Processes of this machine that were started for this house and still live. */
  processes(): number[] {
    return globSync('/proc/[0-9]*/environ').flatMap((file) => {
      try {
        const ours = readFileSync(file, 'utf8').includes(`DATA_DIR=${this.dataDir}`)
        return ours ? [Number(file.split('/')[2])] : []
      } catch {
        return []
      }
    })
  }
}

/** What one gateway learns the others know a moment later. */
async function knowsAllAgents(gateway: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    const response = await fetch(`${gateway}/registry/agents`).catch(() => undefined)
    const { agents = [] } = ((await response?.json()) ?? {}) as { agents?: { status: string }[] }
    if (agents.length > 0 && agents.every(({ status }) => status === 'ready')) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${gateway} does not know all agents`)
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('exit', (code) => resolve(code)))
}

export async function until(
  holds: () => boolean,
  limitMs: number,
  say: () => string = () => '',
): Promise<void> {
  const end = Date.now() + limitMs
  while (!holds()) {
    if (Date.now() > end) throw new Error(`did not happen within ${limitMs} ms: ${say()}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

function run(file: string, args: string[], env: NodeJS.ProcessEnv): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      { cwd: root, env, timeout: 120_000, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
        resolve({ code, stdout, stderr })
      },
    )
  })
}
