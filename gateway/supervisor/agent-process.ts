import { type ChildProcess, spawn } from 'node:child_process'
import { LastLines } from './last-lines.ts'
import { type AgentMessage, readAgentMessage } from './messages.ts'

export interface Command {
  file: string
  args: string[]
}

export interface AgentProcessOptions {
  command: Command
  cwd: string
  env: NodeJS.ProcessEnv
  /** Every line that the process writes. */
  pass: (line: string) => void
  onMessage: (message: AgentMessage, process: AgentProcess) => void
}

/** How a process ended. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
  /** What it said last. */
  lastLines: string[]
}

/** One life of an agent's process. */
export class AgentProcess {
  readonly exited: Promise<Exit>
  readonly #child: ChildProcess
  #over = false

  constructor(options: AgentProcessOptions) {
    const lines = new LastLines(options.pass)
    this.#child = spawn(options.command.file, options.command.args, {
      cwd: options.cwd,
      env: options.env,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // A group of its own: a Ctrl-C in the terminal reaches the gateway alone, which then stops its agents in order.
      detached: true,
    })
    if (this.#child.stdout !== null) lines.read(this.#child.stdout)
    if (this.#child.stderr !== null) lines.read(this.#child.stderr)
    this.#child.on('message', (value) => {
      const message = readAgentMessage(value)
      if (message !== undefined) options.onMessage(message, this)
    })
    this.exited = new Promise((resolve) => {
      // `close`, not `exit`: the last lines are still in the pipe when a process exits.
      this.#child.once('close', (code, signal) => resolve({ code, signal, lastLines: lines.tail() }))
      this.#child.once('error', (error) => {
        resolve({ code: null, signal: null, lastLines: [...lines.tail(), error.message] })
      })
    }).then((exit) => {
      this.#over = true
      return exit as Exit
    })
    // Processes that it started itself and left behind would keep its pipes open.
    this.#child.once('exit', () => this.#killGroup())
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  send(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => undefined)
  }

  /** Asks it to stop; after `limitMs` it is killed. Resolves when it is gone. */
  async stop(limitMs: number): Promise<void> {
    if (this.#over) return
    this.#child.kill('SIGTERM')
    const limit = setTimeout(() => this.kill(), limitMs)
    await this.exited
    clearTimeout(limit)
  }

  /** At once, with everything that it started. */
  kill(): void {
    if (!this.#over) this.#killGroup()
  }

  #killGroup(): void {
    if (this.#child.pid === undefined) return
    try {
      process.kill(-this.#child.pid, 'SIGKILL')
    } catch {
      // Nobody is left.
    }
  }
}
