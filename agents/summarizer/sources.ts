import { callersMessages, type HandlerContext } from '@parley/agent'
import { instructionBeside, type Request, splitRequest } from './request.ts'

/** Maximum size of the text in UTF-8 bytes. */
export const maxSourceBytes = 2 * 1024 * 1024

export type Source =
  | { kind: 'text'; text: string; instruction: string }
  | { kind: 'none'; instruction: string }
  | { kind: 'refused'; reason: string }

type Given = Pick<HandlerContext, 'text' | 'files' | 'references' | 'history' | 'context'>
type File = HandlerContext['files'][number]
type Message = HandlerContext['history'][number]

/** Finds the source text in files, the message, referenced tasks or an earlier task, in this order. */
export function sourceOf(given: Given): Source {
  const unreadable = given.files.find((file) => !isText(file))
  if (unreadable !== undefined) {
    const name = unreadable.name ?? 'the file'
    return { kind: 'refused', reason: `I read plain text and Markdown; ${name} is neither.` }
  }
  const beside = given.files.length > 0 || given.references.length > 0
  const newest = beside ? instructionBeside(given.text) : splitRequest(given.text)
  const instruction = [...earlierInstructions(given.history), newest.instruction].join('\n').trim()
  const text = bodies(given, newest).find((candidate) => candidate.trim() !== '')
  if (text === undefined) return { kind: 'none', instruction }
  if (Buffer.byteLength(text) > maxSourceBytes) {
    return { kind: 'refused', reason: 'The text is too long: I read up to 2 MB.' }
  }
  return { kind: 'text', text, instruction }
}

function* bodies({ files, references, context }: Given, newest: Request): Generator<string> {
  const inFiles = files.map((file) => file.text).join('\n\n')
  yield [newest.body, inFiles].filter((text) => text !== '').join('\n\n')
  yield references.map((reference) => reference.text).join('\n\n')
  for (const earlier of context.history.toReversed()) {
    yield requestIn(earlier.history).body
  }
}

/** The options in an earlier message, if we replied to it by asking for the text. */
const earlierInstructions = (history: Message[]): string[] =>
  callersMessages(history.slice(0, -1)).map((message) => splitRequest(textOf(message)).instruction)

/** The text of the previous task, to which an instruction such as “now in one sentence” refers. */
function requestIn(history: Message[]): Request {
  const said = callersMessages(history).map((message) => splitRequest(textOf(message)))
  return said.findLast(({ body }) => body !== '') ?? { instruction: '', body: '' }
}

const textOf = (message: Message): string =>
  message.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('\n')

function isText({ mimeType, name, bytes }: File): boolean {
  const type = mimeType?.split(';')[0]?.trim().toLowerCase()
  const byName = /\.(?:txt|text|md|markdown)$/i.test(name ?? '')
  const named = type === undefined || type === '' || type === 'application/octet-stream' ? byName : false
  return (named || type === 'text/plain' || type === 'text/markdown') && !bytes.subarray(0, 4096).includes(0)
}
