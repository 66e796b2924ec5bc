import { printable } from './printable.ts'

/** Where a command reads and writes. Results go to `stdout`, everything said about them to `stderr`. */
export interface Io {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stdout: NodeJS.WritableStream & { isTTY?: boolean }
  stderr: NodeJS.WritableStream & { isTTY?: boolean }
  env: NodeJS.ProcessEnv
  cwd: string
}

export const processIo: Io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
}

/** A line of progress or explanation; what others wrote into it can do nothing to the terminal. */
export function say(io: Io, line: string): void {
  io.stderr.write(`${printable(line)}\n`)
}

/** A result. On a terminal it is made harmless; a pipe gets every byte as it came. */
export function print(io: Io, text: string): void {
  io.stdout.write(io.stdout.isTTY === true ? printable(text) : text)
}

/** A result for programs: one JSON value on one line. */
export function printJson(io: Io, value: unknown): void {
  io.stdout.write(`${JSON.stringify(value)}\n`)
}
