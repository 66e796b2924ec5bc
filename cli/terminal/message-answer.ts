import type { WireMessage } from '@parley/wire/codecs/parley/shapes'
import { type Io, print, say } from './io.ts'
import { textOf } from './task-view.ts'

/** Whether an agent responded to `message/send` with a Message instead of a Task, as A2A allows. */
export function isMessage(answer: object): answer is WireMessage {
  return 'kind' in answer && answer.kind === 'message'
}

/** Prints the text to stdout, or the data parts as JSON if there is no text. Files are counted. */
export function printMessage(io: Io, { parts }: WireMessage, agent: string): void {
  say(io, `${agent === '-' ? 'The agent' : agent} answered directly, without a task.`)
  const text = textOf(parts)
  if (text !== '') print(io, `${text}\n`)
  else
    for (const part of parts) if (part.kind === 'data') print(io, `${JSON.stringify(part.data, null, 2)}\n`)
  const files = parts.filter(({ kind }) => kind === 'file').length
  if (files > 0)
    say(io, `The answer has ${files} file${files === 1 ? '' : 's'}: --json prints the whole answer.`)
}
