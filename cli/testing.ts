import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { main } from './main.ts'
import type { Io } from './terminal/io.ts'

/** Runs the command line in this process and captures its output. For tests only. */
export async function runCli(
  argv: string[],
  given: { env?: Record<string, string>; cwd?: string; stdin?: string; tty?: boolean } = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const tty = given.tty === true ? { isTTY: true } : {}
  if (given.tty === true) stdin.write(given.stdin ?? '')
  else stdin.end(given.stdin ?? '')
  const io: Io = {
    stdin: Object.assign(stdin, tty),
    stdout: Object.assign(stdout, tty),
    stderr: Object.assign(stderr, tty),
    env: { ...given.env },
    cwd: given.cwd ?? os.tmpdir(),
  }
  const code = await main(argv, io)
  return { code, stdout: textIn(stdout), stderr: textIn(stderr) }
}

function textIn(stream: PassThrough): string {
  return ((stream.read() as Buffer | null) ?? '').toString()
}

/** A temporary folder that is removed when the test ends. */
export function temporaryFolder(): { path: string } & Disposable {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-cli-'))
  return { path: folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}
