import type { HandlerContext } from '../../shared/handler/define-agent.ts'
import { TableFault } from './bounds.ts'
import { splitText } from './csv-in-text.ts'
import { decode } from './decode.ts'
import type { AnalysisRequest } from './outcome.ts'

type Message = HandlerContext['message']
type Part = Message['parts'][number]
type Conversation = Pick<HandlerContext, 'history' | 'references' | 'context'>

interface Said {
  text: string
  table?: { csv: string; name: string }
}

/**
 * The table and the question of a task. The table may have come with an earlier message of the task (we asked back),
 * with a referenced task, or with an earlier task of the conversation; the newest counts.
 */
export function findTable({
  history,
  references,
  context,
}: Conversation): AnalysisRequest | { question: string } {
  const asked = lastQuestion(history)
  const before = history.slice(0, asked).filter(isCallers).map(read)
  const after =
    asked === -1
      ? []
      : history
          .slice(asked + 1)
          .filter(isCallers)
          .map(read)
  const own = [...(asked === -1 ? history.filter(isCallers).map(read) : before), ...after]
  const table = own.findLast((said) => said.table)?.table ?? earlierTable([...context.history, ...references])
  // A new table is a new question; what was asked about the one before does not hold for it.
  if (asked !== -1 && !after.some((said) => said.table) && before.some((said) => said.table || said.text)) {
    const answer = joined(after)
    return table ? { ...table, question: joined(before), answer } : { question: answer }
  }
  const question = joined(after.length > 0 ? after : own) || joined(before)
  return table ? { ...table, question } : { question }
}

const isCallers = ({ role }: Message) => role === 'user' || role === 'system'

/** Where we asked which column, -1 where we did not. Asking for the table itself does not count: its answer is a beginning. */
function lastQuestion(history: Message[]): number {
  return history.findLastIndex(
    ({ role, parts }) =>
      role !== 'user' && parts.some((part) => part.kind === 'data' && 'columns' in part.data),
  )
}

const joined = (said: Said[]) =>
  said
    .map(({ text }) => text)
    .filter(Boolean)
    .join('\n')

function earlierTable(tasks: HandlerContext['references']): Said['table'] {
  for (const task of tasks.toReversed()) {
    // What the caller gave comes before what was made of it; our own reports hold tables too, and they are no data.
    const given = task.history.filter(isCallers).flatMap((message) => message.parts)
    const made = task.artifacts.flatMap((artifact) => artifact.parts).filter((part) => part.kind !== 'text')
    const table = tableOf(given) ?? tableOf(made)
    if (table) return table
  }
  return undefined
}

function read(message: Message): Said {
  const file = tableOf(message.parts.filter((part) => part.kind !== 'text'))
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

function tableOf(parts: Part[]): Said['table'] {
  return parts.map(tableOfPart).findLast((table) => table !== undefined)
}

function tableOfPart(part: Part): Said['table'] {
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
  const { name, mimeType, bytes } = part.file
  if (bytes === undefined || !isTable(name, mimeType)) return undefined
  return { csv: decode(Buffer.from(bytes, 'base64')), name: name?.split(/[\\/]/).at(-1) ?? 'table' }
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
