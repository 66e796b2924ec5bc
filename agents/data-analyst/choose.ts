import { choices, type Request } from './request.ts'
import type { Aggregate, Period } from './statistics/group.ts'
import {
  type Column,
  type DateColumn,
  isCategory,
  isDate,
  isMeasure,
  isNumber,
  isWord,
  type NumberColumn,
  type WordColumn,
} from './table/columns.ts'

/** The columns of a chart and its type. */
export type Plan =
  | {
      kind: 'line'
      date: DateColumn
      measures: NumberColumn[]
      by?: WordColumn
      aggregate?: Aggregate
      period?: Period
    }
  | {
      kind: 'bar' | 'pie'
      category: WordColumn
      measures: NumberColumn[]
      aggregate?: Aggregate
      top?: number
    }
  | { kind: 'histogram'; measure: NumberColumn }
  | { kind: 'scatter'; x: NumberColumn; y: NumberColumn }
  | { kind: 'box'; measure: NumberColumn; by?: WordColumn }
  | { kind: 'heatmap'; measures: NumberColumn[] }

/** A follow-up question that asks which column to use. */
export interface Ask {
  ask: string
  /** The columns that the question offers, numbered from 1. */
  columns: string[]
}

export type Choice = Plan | Ask | 'overview'

const linesMax = 5

/** Chooses the chart for a question, asks a follow-up question if it is ambiguous, or plans an overview. */
export function choose(request: Request, columns: Column[]): Choice {
  const measures = columns.filter(isMeasure)
  const named = request.columns
  if (request.unknown && named.length === 0) return askUnknown(request.unknown, columns)
  if (request.overview) return 'overview'
  const numbers = named.filter(isNumber)
  const words = named.filter(isWord)
  const date = named.find(isDate) ?? columns.find(isDate)
  const overTime = request.period !== undefined || request.chart === 'line' || named.some(isDate)
  const facts: Facts = { request, columns, measures, numbers, words, date, overTime }
  for (const rule of rules) {
    const choice = rule(facts)
    if (choice) return choice
  }
  return measures.length > 1 ? ask('Which column shall I look at?', columns) : 'overview'
}

interface Facts {
  request: Request
  columns: Column[]
  measures: NumberColumn[]
  /** Numeric and text columns named in the question. */
  numbers: NumberColumn[]
  words: WordColumn[]
  date: DateColumn | undefined
  overTime: boolean
}

type Rule = (facts: Facts) => Choice | undefined

/** Rules in order of precedence; the first applicable one decides. */
const rules: Rule[] = [
  heatmap,
  scatter,
  distribution,
  boxes,
  course,
  groups,
  severalNumbers,
  oneNumber,
  onlyTheChart,
]

function heatmap({ request, measures, numbers }: Facts): Choice | undefined {
  if (request.chart !== 'heatmap') return undefined
  const compared = numbers.length > 2 ? numbers : measures
  if (compared.length > 2) return { kind: 'heatmap', measures: compared.slice(0, 20) }
  const [x, y] = compared
  return x && y ? { kind: 'scatter', x, y } : undefined
}

function scatter({ request, columns, measures, numbers, words, overTime }: Facts): Choice | undefined {
  if (request.chart !== 'scatter' || words.length > 0 || (overTime && numbers.length < 2)) return undefined
  const [x, y = measures.length === 2 ? measures.find((other) => other !== x) : undefined] = numbers
  if (x && y) return { kind: 'scatter', x, y }
  if (!x && measures.length === 2)
    return { kind: 'scatter', x: measures[0] as NumberColumn, y: measures[1] as NumberColumn }
  if (measures.length < 2) return undefined
  return ask(
    x ? `Which column shall I compare with ${x.name}?` : 'Which two columns shall I compare?',
    columns,
    x,
  )
}

function distribution({ request, columns, measures, numbers, words }: Facts): Choice | undefined {
  if (request.chart !== 'histogram') return undefined
  const [measure = words.length === 0 && measures.length === 1 ? measures[0] : undefined] = numbers
  const [category] = words
  if (measure && category) return { kind: 'box', measure, by: category }
  if (measure) return { kind: 'histogram', measure }
  if (category) return { kind: 'bar', category, measures: [], ...topOf(request) }
  return measures.length > 0 ? ask('Of which column shall I draw the distribution?', columns) : undefined
}

function boxes({ request, columns, measures, numbers, words }: Facts): Choice | undefined {
  if (request.chart !== 'box') return undefined
  const [measure = measures.length === 1 ? measures[0] : undefined] = numbers
  const [category] = words
  if (measure) return { kind: 'box', measure, ...(category && { by: category }) }
  return measures.length > 0 ? ask('Of which column shall I draw the box plot?', columns) : undefined
}

function course({ request, columns, measures, numbers, words, date, overTime }: Facts): Choice | undefined {
  if (!overTime || !date || request.chart === 'pie' || (request.chart === 'bar' && words.length > 0))
    return undefined
  const { aggregate, period } = request
  const [by] = words
  const shape = { ...(by && { by }), ...(aggregate && { aggregate }), ...(period && { period }) }
  if (numbers.length > 0) return { kind: 'line', date, measures: numbers.slice(0, linesMax), ...shape }
  if (aggregate === 'count' || measures.length === 0)
    return { kind: 'line', date, measures: [], ...shape, aggregate: 'count' }
  if (measures.length === 1) return { kind: 'line', date, measures, ...shape }
  return ask(`Which column shall I follow over ${date.name}?`, columns)
}

function groups({ request, columns, measures, numbers, words }: Facts): Choice | undefined {
  const by = request.by && isWord(request.by) ? request.by : words[0]
  const category =
    by ?? (request.chart === 'bar' || request.chart === 'pie' ? onlyCategory(columns) : undefined)
  if (!category || (!by && numbers.length === 0 && measures.length > 1)) return undefined
  const kind = request.chart === 'pie' ? 'pie' : 'bar'
  const { aggregate } = request
  const shape = { kind, category, ...(aggregate && { aggregate }), ...topOf(request) } as const
  if (numbers.length > 0) return { ...shape, measures: numbers.slice(0, 4) }
  if (aggregate === 'count' || measures.length === 0 || !request.by)
    return { ...shape, measures: [], aggregate: 'count' }
  if (measures.length === 1) return { ...shape, measures }
  return ask(`Which column shall I compare by ${category.name}?`, columns)
}

function severalNumbers({ numbers, date }: Facts): Choice | undefined {
  const [x, y, z] = numbers
  if (!x || !y) return undefined
  if (z)
    return date
      ? { kind: 'line', date, measures: numbers.slice(0, linesMax) }
      : { kind: 'heatmap', measures: numbers }
  return { kind: 'scatter', x, y }
}

function oneNumber({ request, numbers, date }: Facts): Choice | undefined {
  const [measure] = numbers
  if (!measure) return undefined
  // Shows the distribution of a single figure.
  if (request.aggregate || !date) return { kind: 'histogram', measure }
  return { kind: 'line', date, measures: [measure] }
}

/** Handles "draw it", "the mean" and "plot the column", which are unambiguous only for a table with one column. */
function onlyTheChart({ measures, date, overTime }: Facts): Choice | undefined {
  const [measure] = measures
  if (!measure || measures.length > 1) return undefined
  return overTime && date ? { kind: 'line', date, measures: [measure] } : { kind: 'histogram', measure }
}

const topOf = ({ top }: Request) => (top ? { top } : {})

function onlyCategory(columns: Column[]): WordColumn | undefined {
  const categories = columns.filter(isCategory)
  return categories.length === 1 ? categories[0] : undefined
}

const offeredMax = 20

function ask(question: string, columns: Column[], without?: Column): Ask {
  const offered = choices(columns).map(({ name }) => name)
  const list = offered
    .slice(0, offeredMax)
    .flatMap((name, at) => (name === without?.name ? [] : [`${at + 1}. ${name}`]))
  const more =
    offered.length > offeredMax ? [`… and ${offered.length - offeredMax} more; write its name.`] : []
  return { ask: [question, ...list, ...more].join('\n'), columns: offered }
}

function askUnknown(name: string, columns: Column[]): Ask {
  return ask(`The table has no column "${name.slice(0, 60)}". Which column do you mean?`, columns)
}
