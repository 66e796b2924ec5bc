import type { Readable } from 'node:stream'

const lineMaxChars = 64 * 1024
const kept = 8
const keptMaxChars = 500

/** Passes the lines of a process on, each as it is complete, and remembers the last few. Bounded whatever is written. */
export class LastLines {
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
      for (const line of lines) this.#take(line)
      if (rest.length > lineMaxChars) {
        this.#take(rest)
        rest = ''
      }
    })
    stream.on('end', () => this.#take(rest))
    stream.on('error', () => undefined)
  }

  /** What the process said last: the message of a log line, any other line as it is. */
  tail(): string[] {
    return this.#lines.map(sayingOf)
  }

  #take(line: string): void {
    if (line.trim() === '') return
    this.#pass(line.slice(0, lineMaxChars))
    this.#lines.push(line.slice(0, lineMaxChars))
    if (this.#lines.length > kept) this.#lines.shift()
  }
}

function sayingOf(line: string): string {
  try {
    const { msg, reason, err } = JSON.parse(line) as Record<'msg' | 'reason', unknown> & {
      err?: { message?: unknown }
    }
    const said = [msg, reason, err?.message].filter((text) => typeof text === 'string')
    if (said.length > 0) return said.join(': ').slice(0, keptMaxChars)
  } catch {
    // Not a log line.
  }
  return line.slice(0, keptMaxChars)
}
