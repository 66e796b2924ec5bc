import { areCallers, callersMessages, type HandlerContext } from '@parley/agent'
import { TableFault } from '../bounds.ts'
import type { AnalysisRequest } from '../outcome.ts'
import { splitText } from './csv-in-text.ts'
import { decode } from './decode.ts'

type Message = HandlerContext['message']
type Part = Message['parts'][number]
type File = HandlerContext['files'][number]
type Conversation = Pick<HandlerContext, 'files' | 'history' | 'references' | 'context'>

interface Said {
  text: string
  table?: { csv: string; name: string }
}

/**
 * Finds the table and the question for a task. The table may be in an earlier message of the task (before our follow-up
 * question), in a referenced task, or in an earlier task of the conversation. The latest table is used.
 */
export function findTable({
  files,
  history,
  references,
  context,
}: Conversation): AnalysisRequest | { question: string } {
  const callers = areCallers(history)
  const asked = lastQuestion(history, callers)
  const newest = history.length - 1
  const said = history.map((message, at) => callers[at] && read(message, at === newest ? files : []))
  const own = said.filter((one) => typeof one === 'object')
  const before = asked === -1 ? [] : said.slice(0, asked).filter((one) => typeof one === 'object')
  const after = own.slice(before.length)
  const table = own.findLast((one) => one.table)?.table ?? earlierTable([...context.history, ...references])
  // Questions about an earlier table do not apply to a new one.
  if (asked !== -1 && !after.some((said) => said.table) && before.some((said) => said.table || said.text)) {
    const answer = joined(after)
    return table ? { ...table, question: joined(before), answer } : { question: answer }
  }
  const question = joined(after.length > 0 ? after : own) || joined(before)
  return table ? { ...table, question } : { question }
}

/** Index of our question about a column, or -1. A request for the table itself does not count. */
function lastQuestion(history: Message[], callers: boolean[]): number {
  return history.findLastIndex(
    ({ parts }, at) =>
      !callers[at] && parts.some((part) => part.kind === 'data' && Array.isArray(part.data['columns'])),
  )
}

const joined = (said: Said[]) =>
  said
    .map(({ text }) => text)
    .filter(Boolean)
    .join('\n')

function earlierTable(tasks: HandlerContext['references']): Said['table'] {
  for (const task of tasks.toReversed()) {
    // Prefers the caller's input to results, because our own reports contain tables that are not data.
    const given = callersMessages(task.history).flatMap((message) => message.parts)
    const made = task.artifacts.flatMap((artifact) => artifact.parts).filter((part) => part.kind !== 'text')
    const table = tableOf(given) ?? tableOf(made)
    if (table) return table
  }
  return undefined
}

function read(message: Message, files: File[]): Said {
  const file = tableOf(
    message.parts.filter((part) => part.kind !== 'text'),
    files,
  )
  const text = message.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n')
  const asked = questionIn(message.parts)
  if (file) return { text: joined([{ text: asked }, { text: text.trim() }]), table: file }
  const { question, csv } = splitText(text)
  return {
    text: joined([{ text: asked }, { text: question }]),
    ...(csv !== undefined && { table: { csv, name: 'table' } }),
  }
}

function questionIn(parts: Part[]): string {
  return parts
    .flatMap((part) =>
      part.kind === 'data' && typeof part.data['question'] === 'string' ? [part.data['question']] : [],
    )
    .join('\n')
}

/** @param files the fetched files of the parts, in order; only they have the content of parts with a `uri` */
function tableOf(parts: Part[], files: File[] = []): Said['table'] {
  let at = 0
  return parts
    .map((part) => tableOfPart(part, part.kind === 'file' ? files[at++] : undefined))
    .findLast((table) => table !== undefined)
}

function tableOfPart(part: Part, known: File | undefined): Said['table'] {
  if (part.kind === 'data') {
    const { csv, name } = part.data
    return typeof csv === 'string'
      ? { csv, name: typeof name === 'string' && name ? name : 'table' }
      : undefined
  }
  if (part.kind === 'text') {
    const { csv } = splitText(part.text)
    return csv === undefined ? undefined : { csv, name: 'table' }
  }
  const { name, mimeType } = known ?? part.file
  const given = part.file.bytes
  if ((given === undefined && !known?.bytes.length) || !isTable(name, mimeType)) return undefined
  return {
    csv: decode(known?.bytes ?? Buffer.from(given ?? '', 'base64')),
    name: name?.split(/[\\/]/).at(-1) ?? 'table',
  }
}

function isTable(name = '', mimeType = ''): boolean {
  const type = mimeType.toLowerCase().split(';')[0] ?? ''
  if (/spreadsheet|ms-excel$/.test(type) && !/\.(csv|tsv|txt)$/i.test(name)) {
    throw new TableFault(
      'A spreadsheet file cannot be read here. Please save the sheet as CSV and send that.',
    )
  }
  return (
    /csv|tab-separated/.test(type) ||
    /\.(csv|tsv|tab|txt)$/i.test(name) ||
    type === 'text/plain' ||
    type === 'application/vnd.ms-excel' ||
    (!type && !name)
  )
}
