import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Duplex } from 'node:stream'
import type { Command } from '../isolation/launch.ts'
import { type AgentMessage, readAgentMessage } from './messages.ts'
import { ProcessOutput } from './process-output.ts'
import { readMessages } from './read-messages.ts'

export interface AgentProcessOptions {
  command: Command
  cwd: string
  env: NodeJS.ProcessEnv
  /** Called with every line that the process writes. */
  pass: (line: string) => void
  onMessage: (message: AgentMessage, process: AgentProcess) => void
  /** Called with the reason when the process sends too many or too large messages. */
  onFlood?: (reason: string) => void
  /** Called when the process has exited, possibly before its output has been read. */
  onExit?: () => void
  /** Whether the command forks the process and ignores SIGTERM itself. */
  forks?: boolean
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
  readonly #channel: Duplex | undefined
  readonly #forks: boolean
  #over = false

  constructor(options: AgentProcessOptions) {
    const lines = new ProcessOutput(options.pass)
    this.#forks = options.forks === true
    this.#child = spawn(options.command.file, options.command.args, {
      cwd: options.cwd,
      env: hasIpcFraming ? options.env : { ...options.env, ...channelVariables },
      stdio: ['ignore', 'pipe', 'pipe', hasIpcFraming ? 'ipc' : 'pipe'],
      // In a separate process group, Ctrl-C in the terminal reaches only the gateway, which stops its agents in order.
      detached: true,
    })
    if (this.#child.stdout !== null) lines.read(this.#child.stdout)
    if (this.#child.stderr !== null) lines.read(this.#child.stderr)
    const onMessage = (value: unknown) => {
      const message = readAgentMessage(value)
      if (message !== undefined) options.onMessage(message, this)
    }
    const onFlood = (reason: string) => {
      options.onFlood?.(reason)
      this.kill()
    }
    this.#child.on('message', onMessage)
    this.#channel = channelOf(this.#child)
    if (this.#channel !== undefined) readMessages(this.#channel, onMessage, onFlood)
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
    this.#child.once('exit', () => {
      this.#killGroup()
      options.onExit?.()
      // A child process that left the group may keep the pipes open for longer.
      setTimeout(() => this.#closePipes(), pipesLimitMs).unref()
    })
  }

  /** The agent's process on this machine, also if the command forks it. In its own PID namespace, it has another id. */
  get pid(): number | undefined {
    const { pid } = this.#child
    return this.#forks && pid !== undefined ? (childrenOf(pid)[0] ?? pid) : pid
  }

  /** The session of the agent and its children, which its launcher leads. */
  get session(): number | undefined {
    return this.#child.pid
  }

  send(message: object): void {
    if (this.#channel?.writable === true) this.#channel.write(`${JSON.stringify(message)}\n`)
    else if (this.#child.connected) this.#child.send(message, () => undefined)
  }

  /** Sends SIGTERM, then SIGKILL after `limitMs`. Resolves when the process has ended. */
  async stop(limitMs: number): Promise<void> {
    if (this.#over) return
    this.#terminate()
    const limit = setTimeout(() => this.kill(), limitMs)
    await this.exited
    clearTimeout(limit)
  }

  /** Kills the process and its children. */
  kill(): void {
    if (!this.#over) this.#killGroup()
  }

  #terminate(): void {
    const { pid } = this.#child
    if (!this.#forks || pid === undefined) this.#child.kill('SIGTERM')
    else for (const child of childrenOf(pid)) process.kill(child, 'SIGTERM')
  }

  #closePipes(): void {
    for (const pipe of [this.#child.stdout, this.#child.stderr, this.#channel]) pipe?.destroy()
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

/** On Windows, the channel of Node.js is not a stream of lines. */
const hasIpcFraming = process.platform === 'win32'

/** With these variables, Node.js uses file descriptor 3 as its IPC channel: one JSON text per line. */
const channelVariables = { NODE_CHANNEL_FD: '3', NODE_CHANNEL_SERIALIZATION_MODE: 'json' }

const pipesLimitMs = 2000

/** A stream instead of the channel of `child_process`, which would keep a message of any size in memory. */
function channelOf(child: ChildProcess): Duplex | undefined {
  const channel = child.stdio[3]
  if (!(channel instanceof Duplex)) return undefined
  return channel.on('error', () => undefined)
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
  } catch {
    return []
  }
}
