import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const root = path.join(import.meta.dirname, '..', '..')
const bin = path.join(root, 'cli', 'bin.mjs')

/** Before it is started again, where nobody says until when it stays down. */
const downMs = 500
/** A bound against hanging, on a machine that does much else. */
const readyWithinMs = 180_000

export interface KeptProcessOptions {
  name: string
  role: 'gateway' | 'agent'
  /** Of the command line. */
  args: string[]
  port: number
  env: Record<string, string>
  /** What it writes is appended there. */
  logFile: string
}

/** A process of the house that is started again whenever it ends, as an init system does it. */
export class KeptProcess implements AsyncDisposable {
  readonly name: string
  readonly role: 'gateway' | 'agent'
  readonly url: string
  state: 'starting' | 'ready' | 'frozen' | 'down' = 'starting'
  /** How often it ended although nobody killed it and it had been ready. */
  fell = 0
  readonly #options: KeptProcessOptions
  readonly #kept: Promise<void>
  #child: ChildProcess | undefined
  #down: Promise<unknown> | undefined
  readonly #closed = Promise.withResolvers<void>()
  #over = false

  constructor(options: KeptProcessOptions) {
    this.#options = options
    this.name = options.name
    this.role = options.role
    this.url = `http://127.0.0.1:${options.port}`
    this.#kept = this.#keep()
  }

  /** Resolves when it can be used. @throws Error when it cannot in three minutes */
  async ready(): Promise<void> {
    const until = Date.now() + readyWithinMs
    while (this.state !== 'ready') {
      if (Date.now() > until) throw new Error(`${this.name} does not become ready`)
      await wait(50)
    }
  }

  /**
   * SIGKILL: nothing of the process runs any more, nothing is flushed.
   * @param down until it resolves the process is not started again; default: half a second
   */
  kill(down?: Promise<unknown>): void {
    this.state = 'down'
    this.#down = down
    this.#child?.kill('SIGKILL')
  }

  /** SIGSTOP: its connections stay open, and nothing goes on. */
  freeze(): void {
    this.state = 'frozen'
    this.#child?.kill('SIGSTOP')
  }

  thaw(): void {
    if (this.state === 'frozen') this.state = 'ready'
    this.#child?.kill('SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true
    this.#closed.resolve()
    this.kill()
    await this.#kept
  }

  async #keep(): Promise<void> {
    while (!this.#over) {
      this.state = 'starting'
      const child = this.#spawn()
      this.#child = child
      const ended = once(child, 'exit')
      void this.#watch(child)
      await ended
      if ((this.state as KeptProcess['state']) === 'ready') this.fell += 1
      this.state = 'down'
      if (this.#over) return
      await Promise.race([this.#closed.promise, this.#down ?? wait(downMs)])
      this.#down = undefined
    }
  }

  #spawn(): ChildProcess {
    const { args, env, port, logFile } = this.#options
    const log = openSync(logFile, 'a')
    try {
      return spawn(process.execPath, [bin, ...args], {
        cwd: root,
        stdio: ['ignore', log, log],
        env: {
          PATH: process.env.PATH,
          HOME: process.env.HOME,
          ...env,
          HOST: '127.0.0.1',
          PORT: String(port),
        },
      })
    } finally {
      closeSync(log)
    }
  }

  async #watch(child: ChildProcess): Promise<void> {
    while (child === this.#child && this.state === 'starting') {
      const { status } = await healthOf(this)
      if (child !== this.#child || this.state !== 'starting') return
      if (status === 200) this.state = 'ready'
      else await wait(100)
    }
  }
}

export interface Health {
  /** 0: there was no answer. */
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
