import { printable, printableJson } from './printable.ts'

/** Input and output of a command. Results go to `stdout`; progress and explanations go to `stderr`. */
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

/** Prints a line of progress or explanation to stderr, with control sequences removed. */
export function say(io: Io, line: string): void {
  io.stderr.write(`${printable(line)}\n`)
}

/** Prints a result. Control sequences are removed on a terminal; a pipe receives the bytes unchanged. */
export function print(io: Io, text: string): void {
  io.stdout.write(io.stdout.isTTY === true ? printable(text) : text)
}

/** Prints a result for programs: one JSON value on one line. */
export function printJson(io: Io, value: unknown): void {
  io.stdout.write(`${printableJson(JSON.stringify(value))}\n`)
}
