import { type ChildProcess, spawn } from 'node:child_process'
import { type AgentMessage, readAgentMessage } from './messages.ts'
import { ProcessOutput } from './process-output.ts'

export interface Command {
  file: string
  args: string[]
}

export interface AgentProcessOptions {
  command: Command
  cwd: string
  env: NodeJS.ProcessEnv
  /** Called with every line that the process writes. */
  pass: (line: string) => void
  onMessage: (message: AgentMessage, process: AgentProcess) => void
}

/** The way in which a process ended. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
  /** The last lines that the process wrote. */
  lastLines: string[]
}

/** One run of an agent's process. */
export class AgentProcess {
  readonly exited: Promise<Exit>
  readonly #child: ChildProcess
  #over = false

  constructor(options: AgentProcessOptions) {
    const lines = new ProcessOutput(options.pass)
    this.#child = spawn(options.command.file, options.command.args, {
      cwd: options.cwd,
      env: options.env,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // In a separate process group, Ctrl-C in the terminal reaches only the gateway, which stops its agents in order.
      detached: true,
    })
    if (this.#child.stdout !== null) lines.read(this.#child.stdout)
    if (this.#child.stderr !== null) lines.read(this.#child.stderr)
    this.#child.on('message', (value) => {
      const message = readAgentMessage(value)
      if (message !== undefined) options.onMessage(message, this)
    })
    this.exited = new Promise<Exit>((resolve) => {
      // Waits for `close` instead of `exit`, because the pipes may still contain output on `exit`.
      this.#child.once('close', (code, signal) => resolve({ code, signal, lastLines: lines.tail() }))
      this.#child.once('error', (error) => {
        resolve({ code: null, signal: null, lastLines: [...lines.tail(), error.message] })
      })
    }).then((exit) => {
      this.#over = true
      return exit
    })
    // Child processes that outlive the agent would otherwise keep its pipes open.
    this.#child.once('exit', () => this.#killGroup())
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  send(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => undefined)
  }

  /** Sends SIGTERM, then SIGKILL after `limitMs`. Resolves when the process has ended. */
  async stop(limitMs: number): Promise<void> {
    if (this.#over) return
    this.#child.kill('SIGTERM')
    const limit = setTimeout(() => this.kill(), limitMs)
    await this.exited
    clearTimeout(limit)
  }

  /** Kills the process and its children. */
  kill(): void {
    if (!this.#over) this.#killGroup()
  }

  #killGroup(): void {
    if (this.#child.pid === undefined) return
    try {
      process.kill(-this.#child.pid, 'SIGKILL')
    } catch {
      // The group has already ended.
    }
  }
}
