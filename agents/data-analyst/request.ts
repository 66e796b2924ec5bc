import { type Mention, mentionsOf } from './mentions.ts'
import type { Aggregate, Period } from './statistics/group.ts'
import type { Column } from './table/columns.ts'

export type ChartKind = 'bar' | 'line' | 'histogram' | 'scatter' | 'box' | 'pie' | 'heatmap'

/** The parsed question. */
export interface Request {
  /** Named columns, in order. */
  columns: Column[]
  /** The column after "by", "per" or "for each". */
  by: Column | undefined
  chart: ChartKind | undefined
  aggregate: Aggregate | undefined
  period: Period | undefined
  /** Whether the question is general, such as "what stands out?", or missing. */
  overview: boolean
  /** The number in a phrase such as "top 5". */
  top: number | undefined
  /** A column named in the question that the table does not have. */
  unknown: string | undefined
}

const charts: [RegExp, ChartKind][] = [
  [/\b(?:histogram|distribution|distributed|spread|frequenc(?:y|ies))\b/i, 'histogram'],
  [/\bbox ?-?(?:plots?|and-whiskers?)\b/i, 'box'],
  [/\b(?:heat ?map|correlation matrix|correlations)\b/i, 'heatmap'],
  [
    /\b(?:scatter(?: ?plot)?|vs\.?|versus|against|correlat\w*|relationship|relation between|depends? on)\b/i,
    'scatter',
  ],
  [/\b(?:pie|donut|doughnut|proportions?|shares? of|composition|breakdown)\b/i, 'pie'],
  [
    /\b(?:line (?:chart|graph|plot)|lines|trends?|over (?:the )?(?:time|years?|months?|weeks?|days?)|time ?(?:line|series)|develop(?:ed|ment|s)?|evolution|evolved?|course)\b/i,
    'line',
  ],
  [/\b(?:bars?|bar ?(?:charts?|graphs?)|columns? chart|rank(?:ing|ed)?)\b/i, 'bar'],
]

const aggregates: [RegExp, Aggregate][] = [
  [/\b(?:average|mean|avg|typical)\b/i, 'mean'],
  [/\bmedian\b/i, 'median'],
  [/\b(?:how many|number of|count of|counts?)\b/i, 'count'],
  [/\b(?:total|sum|altogether|overall amount)\b/i, 'sum'],
  [/\b(?:maximum|max)\b/i, 'max'],
  [/\b(?:minimum|min)\b/i, 'min'],
]

const periods: [RegExp, Period][] = [
  [/\b(?:by|per|each|every) year\b|\byearly\b|\bannual(?:ly)?\b|\bover the years\b/i, 'year'],
  [/\b(?:by|per|each|every) quarter\b|\bquarterly\b/i, 'quarter'],
  [/\b(?:by|per|each|every) month\b|\bmonthly\b|\bover the months\b/i, 'month'],
  [/\b(?:by|per|each|every) week\b|\bweekly\b/i, 'week'],
  [/\b(?:by|per|each|every) (?:day|date)\b|\bdaily\b/i, 'day'],
  [/\b(?:by|per|each|every) hour\b|\bhourly\b/i, 'hour'],
]

const overviewWords =
  /\b(?:stands? out|standing out|stand-?outs?|overview|summar(?:y|i[sz]e)|describe|insights?|interesting|notable|remarkable|surpris\w+|anomal\w+|analy[sz]e|analysis|explore|explain|tell me|look at|findings?|report|profile|statistics|stats|what(?:'s| is| do you see| can you see)? in|highlights?|key (?:facts|points)|outliers?)\b/i

/** @param question all questions of the caller @param answer the answer to our follow-up question, which takes precedence */
export function requestFrom(question: string, answer: string | undefined, columns: Column[]): Request {
  const asked = readWords(question, columns)
  if (answer === undefined) return asked
  const added = readWords(answer, columns)
  const choice = numbered(answer, columns)
  const named = choice ? [choice] : added.columns
  const free =
    /\b(?:any|all|whatever|you (?:choose|decide|pick)|no matter|either|best|don'?t (?:care|mind))\b/i.test(
      answer,
    )
  return {
    ...asked,
    columns: [...asked.columns, ...named.filter((column) => !asked.columns.includes(column))],
    by: added.by ?? asked.by,
    chart: added.chart ?? asked.chart,
    aggregate: added.aggregate ?? asked.aggregate,
    period: added.period ?? asked.period,
    top: added.top ?? asked.top,
    overview: named.length === 0 && (free || added.overview),
    unknown: named.length === 0 && !free ? (added.unknown ?? answer.trim()) : undefined,
  }
}

function readWords(text: string, columns: Column[]): Request {
  const found = mentionsOf(text, columns)
  const rest = found.rest
  const top = /\btop (\d{1,2})\b/i.exec(rest)?.[1]
  const aggregate = first(aggregates, rest)
  const chart = first(charts, rest)
  return {
    columns: found.mentions.map(({ column }) => column),
    by: byColumn(text, found.mentions),
    chart,
    aggregate,
    period: first(periods, text),
    overview:
      text.trim() === '' || (found.mentions.length === 0 && !chart && !aggregate && overviewWords.test(text)),
    top: top ? Number(top) : undefined,
    unknown: unknownColumn(rest),
  }
}

const first = <Kind>(rows: [RegExp, Kind][], text: string) =>
  rows.find(([pattern]) => pattern.test(text))?.[1]

function byColumn(text: string, mentions: Mention[]): Column | undefined {
  return mentions.find(({ at }) =>
    /\b(?:by|per|for (?:each|every)|across|between|among|grouped by|in each|within each)\s+(?:the\s+)?["'`]?$/i.test(
      text.slice(0, at),
    ),
  )?.column
}

/** Finds a word in the position of a column, such as foo in "histogram of foo". */
function unknownColumn(rest: string): string | undefined {
  const name =
    /\b(?:histogram|distribution|average|mean|median|sum|total|trend|plot|chart|graph|box ?plot) (?:of|for) (?:the )?["'`]?(\p{L}[\p{L}\d_]*)/iu.exec(
      rest,
    )?.[1]
  return name &&
    !/^(?:it|this|that|these|them|all|column|columns|data|values?|table|file|csv|each|every|everything|numbers?)$/i.test(
      name,
    )
    ? name
    : undefined
}

/** Finds the column selected by its number in our question, such as "2" or "the second". */
function numbered(answer: string, columns: Column[]): Column | undefined {
  const number = /^\s*(?:#|no\.?|number)?\s*(\d{1,3})\s*[.)]?\s*$/i.exec(answer)?.[1]
  return number ? choices(columns)[Number(number) - 1] : undefined
}

/** The columns in the order of the follow-up question. */
export function choices(columns: Column[]): Column[] {
  return columns.filter((column) => column.type === 'number' && !column.identifier)
}
