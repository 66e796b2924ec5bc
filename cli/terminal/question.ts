import { createInterface } from 'node:readline/promises'
import type { OutgoingMessage, WireStatus } from '@parley/wire/codecs/parley/shapes'
import { type Io, say } from './io.ts'
import { textOf } from './task-view.ts'

/** Somebody is there to answer: both ends of the conversation are a terminal. */
export function isInteractive(io: Io): boolean {
  return io.stdin.isTTY === true && io.stderr.isTTY === true
}

/** What the paused task wants, as a text. */
export function promptOf(status: WireStatus): string {
  const parts = status.message?.parts ?? []
  const data = parts.flatMap((part) => (part.kind === 'data' ? [JSON.stringify(part.data)] : []))
  return [textOf(parts), ...data].filter((text) => text !== '').join('\n')
}

/** Asks on the terminal. Undefined: no answer was given, or a payment is due, which no text can answer. */
export async function askOnTerminal(
  io: Io,
  status: WireStatus,
  signal: AbortSignal,
): Promise<OutgoingMessage | undefined> {
  if (status.state === 'payment-required') return undefined
  say(io, promptOf(status))
  if (status.state === 'negotiation-bid-submitted') {
    const accept = await readAnswer(io, 'Accept? (yes/no) ', signal)
    if (accept === undefined) return undefined
    return { parts: [{ kind: 'data', data: { accept: /^y(es)?$/i.test(accept) } }] }
  }
  const text = await readAnswer(io, '> ', signal)
  return text === undefined ? undefined : { text }
}

/** Undefined on an empty line and at the end of the input. */
async function readAnswer(io: Io, prompt: string, signal: AbortSignal): Promise<string | undefined> {
  const terminal = createInterface({ input: io.stdin, output: io.stderr })
  const ended = new Promise<undefined>((resolve) => terminal.once('close', () => resolve(undefined)))
  // readline takes Ctrl-C for itself; here it ends the question like Ctrl-D.
  terminal.once('SIGINT', () => terminal.close())
  try {
    const answer = await Promise.race([terminal.question(prompt, { signal }), ended])
    return answer?.trim() === '' ? undefined : answer
  } finally {
    terminal.close()
  }
}
