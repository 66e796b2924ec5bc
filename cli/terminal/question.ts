import { createInterface } from 'node:readline/promises'
import type { OutgoingMessage, WireStatus } from '@parley/wire/codecs/parley/shapes'
import { CommandFailed } from './faults.ts'
import { type Io, say } from './io.ts'
import { textOf } from './task-view.ts'

/** Whether a person can answer a prompt, because stdin and stderr are terminals. */
export function isInteractive(io: Io): boolean {
  return io.stdin.isTTY === true && io.stderr.isTTY === true
}

/**
 * Requests a confirmation at the terminal.
 * @throws CommandFailed with `refused` if the answer is not yes, or with `unattended` without a terminal
 */
export async function confirm(
  io: Io,
  question: string,
  { refused, unattended }: { refused: string; unattended: string },
): Promise<void> {
  if (!isInteractive(io)) throw new CommandFailed(unattended)
  const terminal = createInterface({ input: io.stdin, output: io.stderr })
  try {
    const answer = await terminal.question(`${question} (yes/no) `)
    if (!/^y(es)?$/i.test(answer.trim())) throw new CommandFailed(refused)
  } finally {
    terminal.close()
  }
}

/** Returns the question of a paused task as text. */
export function promptOf(status: WireStatus): string {
  const parts = status.message?.parts ?? []
  const data = parts.flatMap((part) => (part.kind === 'data' ? [JSON.stringify(part.data)] : []))
  return [textOf(parts), ...data].filter((text) => text !== '').join('\n')
}

/** Prompts on the terminal. Returns undefined if no answer was given or the task waits for a payment. */
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

/** Reads one line. Returns undefined for an empty line or at the end of the input. */
async function readAnswer(io: Io, prompt: string, signal: AbortSignal): Promise<string | undefined> {
  const terminal = createInterface({ input: io.stdin, output: io.stderr })
  const ended = new Promise<undefined>((resolve) => terminal.once('close', () => resolve(undefined)))
  // readline intercepts Ctrl-C, which is treated like Ctrl-D here.
  terminal.once('SIGINT', () => terminal.close())
  try {
    const answer = await Promise.race([terminal.question(prompt, { signal }), ended])
    return answer?.trim() === '' ? undefined : answer
  } finally {
    terminal.close()
  }
}
