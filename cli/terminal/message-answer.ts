import type { WireMessage } from '@parley/wire/codecs/parley/shapes'
import { type Io, print, say } from './io.ts'
import { textOf } from './task-view.ts'

/** Whether an agent answered `message/send` with a Message, which A2A allows, instead of a Task. */
export function isMessage(answer: object): answer is WireMessage {
  return 'kind' in answer && answer.kind === 'message'
}

/** Text to stdout; without text, the data parts as JSON. Files of a Message are only counted: `--json` shows them. */
export function printMessage(io: Io, { parts }: WireMessage, agent: string): void {
  say(io, `${agent === '-' ? 'The agent' : agent} answered at once, without a task.`)
  const text = textOf(parts)
  if (text !== '') print(io, `${text}\n`)
  else
    for (const part of parts) if (part.kind === 'data') print(io, `${JSON.stringify(part.data, null, 2)}\n`)
  const files = parts.filter(({ kind }) => kind === 'file').length
  if (files > 0)
    say(io, `The answer has ${files} file${files === 1 ? '' : 's'}: --json prints the whole answer.`)
}
