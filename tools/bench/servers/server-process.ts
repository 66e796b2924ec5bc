import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { cpuMicrosOf, nodeOn, rssOf } from '../support/machine.ts'

export interface ServerOptions {
  /** Program and arguments for Node. */
  args: string[]
  /** The CPU core. With `any`, the operating system chooses. */
  core: number | 'any'
  /** Additional environment variables. */
  env?: Record<string, string>
  /** Node flags, for example to create a profile. */
  nodeFlags?: string[]
  /** Startup time limit. Default 30 s. */
  startLimitMs?: number
}

const startLimitDefaultMs = 30_000

/** A server in a separate process. Disposing of the object stops it. */
export class ServerProcess implements AsyncDisposable {
  readonly address: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, address: string) {
    this.#child = child
    this.address = address
  }

  /** Resolves when the process has written a line of JSON with its `address`, as agents do when they are ready. */
  static async start(options: ServerOptions): Promise<ServerProcess> {
    const { file, args } = nodeOn(options.core, [...(options.nodeFlags ?? []), ...options.args])
    const child = spawn(file, args, {
      env: { ...environment(), ...options.env },
      stdio: ['ignore', 'inherit', 'pipe'],
    })
    const output: string[] = []
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    createInterface({ input: child.stderr }).on('line', (line) => {
      output.push(line)
      const address = addressIn(line)
      if (address !== undefined) resolve(address)
    })
    const failed = (why: string) => () => reject(new Error([why, ...output.slice(-20)].join('\n')))
    child.once('exit', failed('The server exited before it was ready.'))
    const limit = setTimeout(
      failed('The server was not ready in time.'),
      options.startLimitMs ?? startLimitDefaultMs,
    )
    try {
      return new ServerProcess(child, await promise)
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    } finally {
      clearTimeout(limit)
    }
  }

  get pid(): number {
    return this.#child.pid as number
  }

  get cpuMicros(): number {
    return cpuMicrosOf(this.pid)
  }

  get rssBytes(): number {
    return rssOf(this.pid)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), 15_000)
    await gone
    clearTimeout(limit)
  }
}

/** The environment of `npm start`: production, with the compile cache of Parley. */
function environment(): NodeJS.ProcessEnv {
  const { PATH, HOME, XDG_CACHE_HOME } = process.env
  const caches = XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache')
  return {
    PATH,
    HOME,
    NODE_ENV: 'production',
    // The load generator connects to agents directly, with tokens without an audience.
    AGENT_TOKEN_AUDIENCE: 'optional',
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? path.join(caches, 'parley', 'compiled'),
  }
}

function addressIn(line: string): string | undefined {
  try {
    const { address } = JSON.parse(line) as { address?: string }
    return address
  } catch {
    return undefined
  }
}
