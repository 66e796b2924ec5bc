import { type Command, InvalidArgumentError } from 'commander'
import type { Io } from '../terminal/io.ts'

export interface ListenOptions {
  port?: string
  json?: true
}

/** Adds the options that all commands that run a server share. */
export function withListenOptions<T extends Command>(command: T): T {
  return command
    .option('--port <port>', 'port to listen on (default: PORT, else 7400)', port)
    .option('--json', 'log JSON lines even on a terminal; the line "… is ready" has the address')
}

/** Writes the options to the environment, which the servers read. Options take precedence. */
export function applyListenOptions(io: Io, options: ListenOptions): void {
  if (options.port !== undefined) io.env.PORT = options.port
  // Loggers use the human-readable format only if stderr is a terminal.
  if (options.json) Object.defineProperty(process.stderr, 'isTTY', { value: false, configurable: true })
}

function port(text: string): string {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535)
    throw new InvalidArgumentError('It is not a port number.')
  return text
}
