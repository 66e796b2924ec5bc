import { type ChildProcess, execFile, spawn } from 'node:child_process'
import path from 'node:path'
import { type Ran, until } from './house.ts'

const bin = path.resolve(import.meta.dirname, '..', 'cli', 'bin.mjs')

export interface Where {
  cwd: string
  env?: Record<string, string>
}

/** Nothing of our own settings: PATH, and what the test says. */
function environment({ env = {} }: Where): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env }
}

/** One command, as typed in `cwd`. */
export function parley(args: string[], where: Where): Promise<Ran> {
  const options = { cwd: where.cwd, env: environment(where), timeout: 120_000 }
  return new Promise((resolve) => {
    execFile(process.execPath, [bin, ...args], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, stdout, stderr })
    })
  })
}

/** A command that runs until it is stopped. */
export class ParleyProcess implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #exited: Promise<number | null>
  readonly #said: string[] = []

  private constructor(args: string[], where: Where) {
    this.#process = spawn(process.execPath, [bin, ...args], {
      cwd: where.cwd,
      env: environment(where),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on('data', (chunk: Buffer) => this.#said.push(chunk.toString()))
    this.#exited = new Promise((resolve) => this.#process.once('exit', resolve))
  }

  /** Resolves once it has said `ready`. */
  static async start(args: string[], ready: RegExp, where: Where): Promise<ParleyProcess> {
    const started = new ParleyProcess(args, where)
    await until(
      () => ready.test(started.output),
      120_000,
      () => started.output,
    )
    return started
  }

  get output(): string {
    return this.#said.join('')
  }

  /** The exit code after SIGTERM. */
  stop(): Promise<number | null> {
    this.#process.kill('SIGTERM')
    return this.#exited
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** SIGKILL: nothing of it runs any more when this resolves. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}
