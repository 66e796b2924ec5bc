import { type Command, InvalidArgumentError } from 'commander'
import type { Io } from '../terminal/io.ts'

export interface ListenOptions {
  port?: string
  json?: true
}

/** The options of every command that runs a server. */
export function withListenOptions<T extends Command>(command: T): T {
  return command
    .option('--port <port>', 'port to listen on (default: PORT, else 7400)', port)
    .option('--json', 'log in lines of JSON on a terminal as well; the line "… is ready" has the address')
}

/** What was typed wins over the environment; the servers read the environment. */
export function applyListenOptions(io: Io, options: ListenOptions): void {
  if (options.port !== undefined) io.env.PORT = options.port
  // Every logger of the house writes for people only where stderr is a terminal.
  if (options.json) Object.defineProperty(process.stderr, 'isTTY', { value: false, configurable: true })
}

function port(text: string): string {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535)
    throw new InvalidArgumentError('It is not a port number.')
  return text
}
