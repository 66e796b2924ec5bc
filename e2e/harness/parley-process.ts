import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

export const root = path.resolve(import.meta.dirname, '..', '..')
/** The command line of Parley in a checkout. */
export const cliIn = (checkout: string) => [process.execPath, path.join(checkout, 'cli', 'bin.mjs')]
const cli = cliIn(root)

/** Delay before a restart, unless `kill` specifies another one. */
const restartDelayMs = 500
const readyTimeoutMs = 180_000

export interface CommandResult {
  code: number
  stdout: string
  stderr: string
}

interface CommandOptions {
  /** Working directory. Default: the root of the repository. */
  cwd?: string
  /** The complete environment. Default: PATH and HOME. */
  env?: NodeJS.ProcessEnv
}

/** Runs a `parley` command until it exits. */
export const parley = (args: string[], options?: CommandOptions) => run([...cli, ...args], options)

export function run([file = '', ...args]: string[], options: CommandOptions = {}): Promise<CommandResult> {
  const settings = { cwd: root, env: baseEnvironment(), timeout: 120_000, maxBuffer: 64 * 1024 * 1024 }
  return new Promise((resolve) => {
    execFile(file, args, { ...settings, ...options }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, stdout, stderr })
    })
  })
}

/** The default environment, without the settings of the process that runs the tests. */
const baseEnvironment = () => ({ PATH: process.env['PATH'], HOME: process.env['HOME'] })

export interface ProcessOptions {
  name: string
  /** Arguments of the command line. */
  args: string[]
  /** Program and first arguments. Default: Parley's command line. */
  command?: string[]
  /** Working directory. Default: the root of the repository. */
  cwd?: string
  port: number
  env: NodeJS.ProcessEnv
  /** Output that marks the process as ready. By default, it is ready when `/health` returns 200. */
  readyOutput?: RegExp
  /** File to which the output is appended. By default, `output` collects it. */
  logFile?: string | undefined
  /** Whether to restart the process after each exit, as an init system does. */
  restarts?: boolean
}

/** A process of Parley that tests can stop, kill, freeze and restart. */
export class ParleyProcess implements AsyncDisposable {
  readonly name: string
  readonly url: string
  state: 'starting' | 'ready' | 'frozen' | 'down' = 'down'
  /** Number of exits that were not requested and happened after the process was ready. */
  unexpectedExits = 0
  output = ''
  #options: ProcessOptions
  readonly #disposed = Promise.withResolvers<void>()
  #isDisposed = false
  #child: ChildProcess | undefined
  #exited: Promise<number | null> = Promise.resolve(null)
  #restarting: Promise<void> = Promise.resolve()
  #downUntil: Promise<unknown> | undefined

  constructor(options: ProcessOptions) {
    this.#options = options
    this.name = options.name
    this.url = `http://127.0.0.1:${options.port}`
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Resolves when the process is ready. @throws Error after three minutes, or if it exits and is not restarted */
  async start(): Promise<this> {
    this.#spawn()
    await this.ready()
    return this
  }

  async ready(): Promise<void> {
    const end = Date.now() + readyTimeoutMs
    while (this.state !== 'ready') {
      const hasExited = this.state === 'down' && this.#options.restarts !== true
      if (hasExited) throw new Error(`${this.name} exited: ${this.output}`)
      if (Date.now() > end) throw new Error(`${this.name} is not ready in time: ${this.output}`)
      await wait(50)
    }
  }

  /** Sends SIGTERM. Resolves with the exit code. */
  stop(): Promise<number | null> {
    this.state = 'down'
    this.#child?.kill('SIGTERM')
    return this.#exited
  }

  /** Stops the process gracefully and starts it again. @throws Error for an exit code other than 0 */
  async restart(): Promise<void> {
    const code = await this.stop()
    if (code !== 0) throw new Error(`${this.name} exited with ${code}`)
    await this.start()
  }

  /** Runs another version, or with other arguments, from the next start on. */
  change(change: Pick<ProcessOptions, 'command' | 'args'>): void {
    this.#options = { ...this.#options, ...change }
  }

  /**
   * Sends SIGKILL. Resolves when the process has exited.
   * @param downUntil promise that delays the restart until it resolves; default: half a second
   */
  async kill(downUntil?: Promise<unknown>): Promise<void> {
    this.state = 'down'
    this.#downUntil = downUntil
    this.#child?.kill('SIGKILL')
    await this.#exited
  }

  /** Sends SIGSTOP. The process keeps its connections but does nothing. */
  freeze(): void {
    this.state = 'frozen'
    this.#child?.kill('SIGSTOP')
  }

  /** Sends SIGCONT. */
  thaw(): void {
    if (this.state === 'frozen') this.state = 'ready'
    this.#child?.kill('SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true
    this.#disposed.resolve()
    await this.kill()
    await this.#restarting
  }

  #spawn(): void {
    const { args, command = cli, cwd = root, env, logFile, port } = this.#options
    const log = logFile === undefined ? undefined : openSync(logFile, 'a')
    this.state = 'starting'
    this.output = ''
    const [file = '', ...first] = command
    const child = spawn(file, [...first, ...args], {
      cwd,
      stdio: ['ignore', log ?? 'pipe', log ?? 'pipe'],
      env: { ...baseEnvironment(), HOST: '127.0.0.1', PORT: String(port), ...env },
    })
    if (log !== undefined) closeSync(log)
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.output += chunk.toString()))
    this.#child = child
    this.#exited = new Promise((resolve) => child.once('exit', resolve))
    this.#restarting = this.#afterExit()
    void this.#watch(child)
  }

  async #afterExit(): Promise<void> {
    await this.#exited
    if (this.state === 'ready') this.unexpectedExits += 1
    this.state = 'down'
    if (this.#options.restarts !== true || this.#isDisposed) return
    await Promise.race([this.#disposed.promise, this.#downUntil ?? wait(restartDelayMs)])
    this.#downUntil = undefined
    if (!this.#isDisposed) this.#spawn()
  }

  async #watch(child: ChildProcess): Promise<void> {
    const { readyOutput } = this.#options
    const isStarting = () => child === this.#child && this.state === 'starting'
    while (isStarting()) {
      const isReady = readyOutput?.test(this.output) ?? (await healthOf(this)).status === 200
      if (isReady && isStarting()) this.state = 'ready'
      else await wait(100)
    }
  }
}

export interface Health {
  /** The HTTP status of `/health`; 0 if there is no response. */
  status: number
  checks: Record<string, string>
}

export async function healthOf({ url }: { url: string }): Promise<Health> {
  try {
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(3000) })
    const { checks = {} } = (await answer.json()) as { checks?: Record<string, string> }
    return { status: answer.status, checks }
  } catch {
    return { status: 0, checks: {} }
  }
}
