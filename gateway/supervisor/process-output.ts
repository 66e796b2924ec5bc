import type { Readable } from 'node:stream'
import { terminalLine } from '@parley/kit/process/terminal-log'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonObjectOf } from '@parley/wire/model/json-text'

const lineMaxChars = 64 * 1024
const kept = 8
const keptMaxChars = 500

/** Returns a function that writes the log lines of agents to stderr, formatted like the gateway's own. */
export function logForwarder(stderr: NodeJS.WriteStream): (line: string) => void {
  if (!stderr.isTTY) {
    let lines = ''
    return (line) => {
      // The lines of one read are written together.
      if (lines === '')
        queueMicrotask(() => {
          stderr.write(lines)
          lines = ''
        })
      lines += `${line}\n`
    }
  }
  return (line) => void stderr.write(terminalLine(line))
}

/** Forwards each complete line that a process writes and keeps the last few lines. Memory use is limited. */
export class ProcessOutput {
  readonly #lines: string[] = []
  readonly #pass: (line: string) => void

  constructor(pass: (line: string) => void) {
    this.#pass = pass
  }

  read(stream: Readable): void {
    let rest = ''
    stream.setEncoding('utf8')
    stream.on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#addLine(line)
      if (rest.length > lineMaxChars) {
        this.#addLine(rest)
        rest = ''
      }
    })
    stream.on('end', () => this.#addLine(rest))
    stream.on('error', () => undefined)
  }

  /** Returns the last lines. A log line is reduced to its message, and any other line is unchanged. */
  tail(): string[] {
    return this.#lines.map(messageOf)
  }

  #addLine(line: string): void {
    if (line.trim() === '') return
    this.#pass(line.slice(0, lineMaxChars))
    this.#lines.push(line.slice(0, lineMaxChars))
    if (this.#lines.length > kept) this.#lines.shift()
  }
}

function messageOf(line: string): string {
  const { msg, reason, err } = jsonObjectOf(line) ?? {}
  const parts = [msg, reason, isObject(err) ? err['message'] : undefined]
  const message = parts.filter((part) => typeof part === 'string').join(': ')
  return (message === '' ? line : message).slice(0, keptMaxChars)
}
