import { clip } from './bounds.ts'
import type { Chart } from './chart/chart.ts'
import { numberText } from './number-text.ts'
import { type Figures, outlierRowsMin } from './statistics/describe.ts'
import { pairsMin } from './statistics/relations.ts'
import type { Column } from './table/columns.ts'

export interface ReportParts {
  name: string
  rows: number
  columns: Column[]
  figures: Figures[]
  findings: string[]
  notes: string[]
  answer: string | undefined
  chart: Chart | undefined
}

const columnsListed = 30

/** Formats the analysis as Markdown, with the answer, the findings, and one line per column. */
export function report({
  name,
  rows,
  columns,
  figures,
  findings,
  notes,
  answer,
  chart,
}: ReportParts): string {
  const listed = columns.slice(0, columnsListed)
  const left = columns.length - listed.length
  return [
    `## ${escapeText(name)}: ${rows.toLocaleString('en-US')} ${rows === 1 ? 'row' : 'rows'}, ${columns.length} ${columns.length === 1 ? 'column' : 'columns'}`,
    ...(answer ? ['', answer] : []),
    '',
    '### Findings',
    '',
    ...(findings.length > 0 ? findings.map((finding) => `- ${finding}`) : [`- ${nothingUnusual(rows)}`]),
    '',
    '### Columns',
    '',
    '| column | type | rows | missing | typical | range |',
    '|---|---|---|---|---|---|',
    ...listed.map((column, at) => row(column, figures[at])),
    ...(left > 0 ? ['', `${left} more columns are listed in the data part.`] : []),
    ...(chart
      ? [
          '',
          `Chart: ${escapeText(chart.title)}${chart.subtitle ? ` (${escapeText(chart.subtitle)})` : ''}, as SVG and PNG.`,
        ]
      : []),
    ...(notes.length > 0 ? ['', ...notes.map((note) => `> ${escapeText(note)}`)] : []),
    '',
  ].join('\n')
}

/** Says that nothing was found, but mentions only what was searched for. */
function nothingUnusual(rows: number): string {
  const few = (what: string) => `${rows} ${rows === 1 ? 'row is' : 'rows are'} too few to look for ${what}.`
  const outliers = `outliers (at least ${outlierRowsMin})`
  if (rows < pairsMin)
    return `Nothing unusual: no clear trend. ${few(`relations (at least ${pairsMin}) and ${outliers}`)}`
  if (rows < outlierRowsMin) return `Nothing unusual: no clear trend, no strong relation. ${few(outliers)}`
  return 'Nothing unusual: no clear trend, no strong relation, no outliers.'
}

function row(column: Column, figure: Figures | undefined): string {
  const [typical, range] = figure ? summary(column, figure) : ['', '']
  const type = column.type === 'number' && column.identifier ? 'identifier' : column.type
  return `| ${[escapeText(column.name), type, figure?.count ?? 0, column.missing, escapeText(typical), escapeText(range)].join(' | ')} |`
}

function summary(column: Column, figure: Figures): [typical: string, range: string] {
  const sign = column.type === 'number' ? column.sign : undefined
  const text = (value: number) => numberText(value, sign)
  if ('median' in figure) {
    if (column.type === 'number' && column.identifier) return ['', `${figure.min} to ${figure.max}`]
    const sd = figure.sd === undefined ? '' : `, sd ${text(figure.sd)}`
    return [
      `mean ${text(figure.mean)}, median ${text(figure.median)}${sd}`,
      `${text(figure.min)} to ${text(figure.max)} (middle half ${text(figure.q1)} to ${text(figure.q3)})`,
    ]
  }
  if ('first' in figure) return [`by ${figure.granularity}`, `${figure.first} to ${figure.last}`]
  if ('top' in figure) {
    const top = figure.top.slice(0, 3).map(({ value, count }) => `${clip(value, 24)} (${count})`)
    return [top.join(', '), `${figure.distinct} different`]
  }
  return ['empty', '']
}

/** Escapes text from the table, so that it does not become markup. */
export const escapeText = (text: string) =>
  text
    .replace(/[\\`*_[\]<>|#]/g, (sign) => (sign === '_' || sign === '#' ? sign : `\\${sign}`))
    .replace(/\s+/g, ' ')
