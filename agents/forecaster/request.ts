import { callersMessages, type HandlerContext } from '@parley/agent'
import type { Duplicates, Series, Unit } from './series.ts'

export interface Request {
  csv: string
  /** The forecast horizon. Undefined means one season, but at least six steps. */
  horizon: Horizon | undefined
  column: string | undefined
  /** The caller's text outside the tables, latest message first, which may name a column. */
  said: string
  /** How to combine duplicate dates, if the caller specified it. */
  duplicates: Duplicates | undefined
}

/** Unit of the horizon. If absent, the horizon is in steps of the series. */
export interface Horizon {
  count: number
  unit?: Unit
}

const horizonMax = 60

type Conversation = Pick<HandlerContext, 'files' | 'history'>
type Part = HandlerContext['history'][number]['parts'][number]
type InputFile = HandlerContext['files'][number]

/** One message from the caller: the text without the table, the data, and the table. */
interface Statement {
  text: string
  data: Record<string, unknown>
  csv: string | undefined
}

/** Finds the latest table of the task, in data, a file or text, and the request for it. Undefined if there is none. */
export function readRequest({ history, files }: Conversation): Request | undefined {
  const messages = callersMessages(history)
  const statements = messages.map(({ parts }, at) => read(parts, at === messages.length - 1 ? files : []))
  const from = statements.findLastIndex(({ csv }) => csv !== undefined)
  const csv = statements[from]?.csv
  if (csv === undefined) return undefined
  // The instruction for duplicates applies to one table only. Other options also apply to the next table.
  const ofTable = statements.slice(from).toReversed()
  const newest = statements.toReversed()
  return {
    csv,
    horizon: first(newest, horizonOf),
    column: first(newest, columnOf),
    said: newest.map(({ text }) => text).join('\n'),
    duplicates: first(ofTable, duplicatesOf),
  }
}

function first<Value>(statements: Statement[], read: (statement: Statement) => Value | undefined) {
  for (const statement of statements) {
    const value = read(statement)
    if (value !== undefined) return value
  }
  return undefined
}

function read(parts: readonly Part[], files: InputFile[]): Statement {
  const lines = parts.flatMap((part) => (part.kind === 'text' ? part.text.split('\n') : []))
  const rows = tableRows(lines)
  const inText = rows.length > 2
  const data = Object.assign({}, ...parts.map((part) => (part.kind === 'data' ? part.data : {}))) as Record<
    string,
    unknown
  >
  const csv =
    typeof data['csv'] === 'string'
      ? data['csv']
      : (fileIn(parts, files) ?? (inText ? rows.join('\n') : undefined))
  return { text: (inText ? lines.filter((line) => !rows.includes(line)) : lines).join('\n'), data, csv }
}

const cellOfDate = /(?:^|[,;\t])\s*"?\d{4}(?:-\d\d(?:-\d\d)?|-?Q[1-4])?"?\s*(?:[,;\t]|$)/i

/** Finds the table in a text. It starts at the header before the first date, because sentences contain commas too. */
function tableRows(lines: string[]): string[] {
  const rows = lines.filter((line) => /^[^,;\t]+[,;\t]/.test(line))
  const header = rows.findIndex((line) => cellOfDate.test(line)) - 1
  const last = rows.findLastIndex((line) => /\d/.test(line))
  return header < 0 ? rows : rows.slice(header, last + 1)
}

/** @param files the fetched files of the parts, in order */
function fileIn(parts: readonly Part[], files: InputFile[]): string | undefined {
  let at = 0
  for (const part of parts) {
    if (part.kind !== 'file') continue
    const known = files[at++]
    const { name = '', mimeType = '' } = known ?? part.file
    if (!/csv|tab-separated|plain/.test(mimeType) && !/\.(csv|tsv)$/i.test(name)) continue
    return known?.text ?? Buffer.from(part.file.bytes ?? '', 'base64').toString('utf8')
  }
  return undefined
}

function columnOf({ text, data }: Statement): string | undefined {
  if (typeof data['column'] === 'string') return data['column']
  return /\bcolumn\s+"?([\w -]{1,60}?)"?(?:[.,;!?]|$)/im.exec(text)?.[1]
}

const numberWords = [
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
]
const count = String.raw`(\d{1,3}|${numberWords.join('|')})`
const unitWord = '(day|week|month|quarter|year)'
const horizons = [
  new RegExp(String.raw`\b(?:next|coming|following)\s+${count}\b(?:[\s-]+${unitWord}s?\b)?`, 'i'),
  new RegExp(String.raw`\b${count}[\s-]+${unitWord}s?\s+(?:ahead|forecast|out|into)\b`, 'i'),
  new RegExp(String.raw`\b${count}\s+\w+\s+ahead\b`, 'i'),
  new RegExp(
    String.raw`\b(?:forecast|predict|project|for)(?:\s+(?:the|for|over))*\s+${count}[\s-]+${unitWord}s?\b`,
    'i',
  ),
]

/** Parses `horizon: 6`, "the next 6 months" or "12 steps ahead". */
function horizonOf({ text, data }: Statement): Horizon | undefined {
  const given = data['horizon']
  if (typeof given === 'number') return Number.isInteger(given) && given >= 1 ? { count: given } : undefined
  for (const pattern of horizons) {
    const [, said = '', unit] = pattern.exec(text) ?? []
    const wanted = Number(said) || numberWords.indexOf(said.toLowerCase()) + 1
    if (wanted >= 1) return { count: wanted, ...(unit !== undefined && { unit: unit.toLowerCase() as Unit }) }
  }
  return undefined
}

const days: Record<Unit, number> = { day: 1, week: 7, month: 365.25 / 12, quarter: 365.25 / 4, year: 365.25 }

/** Converts a horizon to steps. For a daily series, for example, two weeks are 14 steps. */
export function stepsOf(horizon: Horizon | undefined, { unit }: Pick<Series, 'unit'>): number | undefined {
  if (horizon === undefined) return undefined
  return Math.max(1, Math.round((horizon.count * days[horizon.unit ?? unit]) / days[unit]))
}

/** Parses `duplicates: "sum"` or an answer such as "yes", "add them up" or "the average". */
function duplicatesOf({ text, data }: Statement): Duplicates | undefined {
  const given = data['duplicates']
  if (given === 'sum' || given === 'mean') return given
  if (/\b(?:average|mean)\b/i.test(text)) return 'mean'
  return /\b(?:sum|add|total)(?:s|ed|med)?\b|^\s*(?:yes|y|ok|okay|sure|please do)\b/i.test(text)
    ? 'sum'
    : undefined
}

/** Maximum horizon: half the length of the series. */
export function horizonFor(asked: number | undefined, season: number, known: number): number {
  return Math.max(1, Math.min(asked ?? Math.max(6, Math.min(season, 12)), Math.floor(known / 2), horizonMax))
}
