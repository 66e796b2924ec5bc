import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/client'
import { AgentUnreachable } from '../client/agent-errors.ts'
import { McpTransport } from './mcp-transport.ts'

export interface ServerCommand {
  command: string
  args: readonly string[]
  /** All variables of the process. */
  env: Record<string, string>
  cwd: string
  /** Called with each line that the server writes to stderr, and with each line on stdout that is not a message. */
  log: (line: string) => void
  /** The maximum size of a message. Default 50 MB. */
  messageMaxBytes?: number
  /** How long the process may take to end after its input was closed, and after SIGTERM. Default 2 s each. */
  stopMs?: number
}

const [messageMaxBytes, logLineMaxChars, stopMs] = [50_000_000, 8192, 2000]
/** Lines that are not messages, after which the process is ended. */
const garbageMax = 10_000

/** Returns a transport to an MCP server that runs as a process and exchanges messages on its standard input and output. */
export function stdioTransport(server: ServerCommand): McpTransport {
  return new StdioMcpTransport(() => new ProcessTransport(server))
}

/** The client library recognizes processes by these fields. */
class StdioMcpTransport extends McpTransport {
  readonly stderr = undefined
  readonly pid = undefined
}

/**
 * Runs the process in a separate group, which is killed as a whole. The transport of the client library kills the process alone,
 * so that the server behind `npx` or a shell would continue.
 */
class ProcessTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #server: ServerCommand
  #process: ChildProcess | undefined
  #garbage = 0

  constructor(server: ServerCommand) {
    this.#server = server
  }

  async start(): Promise<void> {
    const { command, args, env, cwd, log } = this.#server
    const child = spawn(command, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], detached: true })
    this.#process = child
    const kill = () => killGroup(child)
    process.once('exit', kill)
    child.once('close', () => {
      process.off('exit', kill)
      this.#closed(child)
    })
    // Failures of the start are reported below, and those of signals are followed by SIGKILL.
    child.on('error', () => process.off('exit', kill))
    child.once('exit', () => {
      killGroup(child)
      // A child process that has left the group may keep the pipes open.
      setTimeout(() => this.#closed(child), 500).unref()
    })
    child.stdin.on('error', (error) => this.onerror?.(error))
    const max = this.#server.messageMaxBytes ?? messageMaxBytes
    readLines(
      child.stdout,
      max,
      (line) => this.#receive(line),
      () => this.#flood(),
    )
    readLines(child.stderr, logLineMaxChars, (line) => log(line.toString('utf8')))
    try {
      await once(child, 'spawn')
    } catch (cause) {
      throw new AgentUnreachable('The server could not be started', { received: false, cause })
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin
    if (stdin?.writable !== true)
      throw new AgentUnreachable('The process of the server has ended', { received: false })
    if (!stdin.write(`${JSON.stringify(message)}\n`))
      await Promise.race([once(stdin, 'drain'), once(stdin, 'close')])
  }

  /** Closes the input, then sends SIGTERM, then SIGKILL to the group. */
  async close(): Promise<void> {
    const child = this.#process
    if (child === undefined) return
    const ms = this.#server.stopMs ?? stopMs
    const exited =
      child.exitCode === null && child.signalCode === null ? once(child, 'exit') : Promise.resolve()
    child.stdin?.end()
    const isOver = () => Promise.race([exited.then(() => true), wait(ms, false, { ref: false })])
    if (!(await isOver())) {
      child.kill('SIGTERM')
      await isOver()
    }
    killGroup(child)
    await exited
    this.#closed(child)
  }

  #receive(line: Buffer): void {
    try {
      this.onmessage?.(parseJSONRPCMessage(JSON.parse(line.toString('utf8'))))
    } catch {
      this.#garbage += 1
      if (this.#garbage <= 100) this.#server.log(line.subarray(0, logLineMaxChars).toString('utf8'))
      if (this.#garbage > garbageMax) this.#flood()
    }
  }

  #flood(): void {
    this.#server.log(
      'the server was ended, because its output is too large or consists of other lines than messages',
    )
    if (this.#process !== undefined) killGroup(this.#process)
  }

  #closed(child: ChildProcess): void {
    if (this.#process !== child) return
    this.#process = undefined
    for (const pipe of child.stdio) pipe?.destroy()
    this.onclose?.()
  }
}

/** @param tooLong called instead of `take` for a line that is longer than `maxBytes`; by default, the line is cut */
function readLines(
  stream: NodeJS.ReadableStream,
  maxBytes: number,
  take: (line: Buffer) => void,
  tooLong?: () => void,
): void {
  let chunks: Buffer[] = []
  let size = 0
  let isCut = false
  const end = () => {
    const line = Buffer.concat(chunks)
    chunks = []
    size = 0
    if (!isCut && line.length > 0) take(line)
    isCut = false
  }
  const add = (bytes: Buffer) => {
    if (isCut) return
    size += bytes.length
    chunks.push(bytes)
    if (size <= maxBytes) return
    if (tooLong !== undefined) tooLong()
    else take(Buffer.concat(chunks).subarray(0, maxBytes))
    chunks = []
    isCut = true
  }
  stream.on('data', (bytes: Buffer) => {
    let from = 0
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, from)) {
      add(bytes.subarray(from, at))
      end()
      from = at + 1
    }
    if (from < bytes.length) add(bytes.subarray(from))
  })
  stream.on('end', end)
  stream.on('error', () => {})
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has ended.
  }
}
