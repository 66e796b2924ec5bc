import { numberText } from '../number-text.ts'
import { type Column, isMeasure, isWord } from '../table/columns.ts'
import type { Relations } from '../telling.ts'
import type { Figures, NumberFigures, WordFigures } from './describe.ts'
import type { Trend } from './relations.ts'

/** Describes notable findings in one sentence each, the most significant first. */
export function findings(columns: Column[], figures: Figures[], relations: Relations): string[] {
  const rows = columns[0]?.values.length ?? 0
  return [
    ...trendFindings(relations, columns),
    ...differenceFindings(relations, columns),
    ...correlationFindings(relations),
    ...outlierFindings(columns, figures),
    ...skewFindings(columns, figures),
    ...shareFindings(columns, figures),
    ...missingFindings(columns, rows),
    ...constantFindings(columns, figures),
  ].slice(0, findingsMax)
}

const findingsMax = 12
const perKind = 3

const signOf = (columns: Column[], name: string) => {
  const column = columns.find((column) => column.name === name)
  return column?.type === 'number' ? column.sign : undefined
}

/** Below this number of periods, a weak trend is too often a coincidence. */
const fewPeriods = 4

function trendFindings({ trends }: Relations, columns: Column[]): string[] {
  return trends
    .filter(
      ({ r, periods, yearly }) => yearly !== undefined || Math.abs(r) >= (periods < fewPeriods ? 0.9 : 0.5),
    )
    .slice(0, perKind)
    .map((trend) =>
      trend.yearly !== undefined && Math.abs(trend.r) < 0.8
        ? yearlyFinding(trend)
        : lineFinding(trend, columns),
    )
}

function lineFinding(trend: Trend, columns: Column[]): string {
  const { measure, date, aggregate, period, first, last, r, change, periods } = trend
  const sign = signOf(columns, measure)
  const direction = r > 0 ? 'rises' : 'falls'
  const clarity = Math.abs(r) >= 0.8 ? 'clearly ' : ''
  const by = change === undefined ? '' : ` (fitted line: ${percentText(change)})`
  const what = aggregate === 'sum' ? 'per' : 'on average per'
  return `**${measure}** ${clarity}${direction} over ${date}: ${numberText(first, sign)} in the first of ${periods} periods, ${numberText(last, sign)} in the last${by}, ${what} ${period}.`
}

function yearlyFinding({ measure, date, period, yearly = [] }: Trend): string {
  const newest = yearly.at(-1) ?? 0
  const earlier = yearly.slice(0, -1).map(percentText)
  const before =
    earlier.length === 0
      ? ''
      : `, after ${earlier.join(', ')} in the ${earlier.length === 1 ? 'year' : 'years'} before`
  return `**${measure}** ${newest > 0 ? 'rises' : 'falls'} over ${date} from year to year: ${percentText(newest)} in the newest ${period === 'month' ? '12 months' : '4 quarters'}${before}; most ${period}s moved the same way.`
}

const percentText = (share: number) => `${share > 0 ? '+' : ''}${Math.round(share * 100)} %`

function differenceFindings({ differences }: Relations, columns: Column[]): string[] {
  return differences
    .filter(({ explained }) => explained >= 0.15)
    .slice(0, perKind)
    .map(({ measure, category, highest, lowest, explained }) => {
      const sign = signOf(columns, measure)
      return `**${measure}** differs by **${category}**: on average ${numberText(highest.mean, sign)} for ${highest.value}, ${numberText(lowest.mean, sign)} for ${lowest.value} (the groups explain ${Math.round(explained * 100)} % of its variance).`
    })
}

function correlationFindings({ correlations }: Relations): string[] {
  return correlations
    .filter(({ r }) => Math.abs(r) >= 0.5)
    .slice(0, perKind)
    .map(({ a, b, r, rows }) => {
      const how = Math.abs(r) >= 0.9 ? 'almost in step' : Math.abs(r) >= 0.7 ? 'strongly' : 'moderately'
      return `**${a}** and **${b}** move ${how} ${r > 0 ? 'together' : 'against each other'} (r = ${r.toFixed(2)}, ${rows} rows). That alone shows no cause.`
    })
}

function numbersOf(columns: Column[], figures: Figures[]) {
  return columns.flatMap((column, at) => {
    const figure = figures[at]
    return isMeasure(column) && figure && 'median' in figure
      ? [{ column, figure: figure as NumberFigures }]
      : []
  })
}

function outlierFindings(columns: Column[], figures: Figures[]): string[] {
  return numbersOf(columns, figures)
    .filter(({ figure }) => figure.outliers.count > 0)
    .sort((a, b) => farthest(b.figure) - farthest(a.figure))
    .slice(0, perKind)
    .map(({ column, figure: { outliers } }) => {
      const examples = outliers.examples
        .slice(0, 3)
        .map(({ row, value }) => `${numberText(value, column.sign)} (row ${row})`)
      const more = outliers.count > examples.length ? `, and ${outliers.count - examples.length} more` : ''
      const range = `${numberText(outliers.below, column.sign)} to ${numberText(outliers.above, column.sign)}`
      return `**${column.name}** has ${outliers.count === 1 ? 'an outlier' : `${outliers.count} outliers`}: ${examples.join(', ')}${more}; usual is ${range}.`
    })
}

/** Distance of the most extreme value in interquartile ranges. */
function farthest({ outliers, q1, q3 }: NumberFigures): number {
  const value = outliers.examples[0]?.value ?? 0
  return Math.max(q1 - value, value - q3) / (q3 - q1 || 1)
}

function skewFindings(columns: Column[], figures: Figures[]): string[] {
  return numbersOf(columns, figures)
    .filter(
      ({ figure }) =>
        figure.count >= 20 &&
        figure.sd !== undefined &&
        Math.abs(figure.mean - figure.median) > 0.3 * figure.sd,
    )
    .slice(0, 2)
    .map(({ column, figure }) => {
      const side =
        figure.mean > figure.median
          ? 'a few large values pull the mean up'
          : 'a few small values pull the mean down'
      return `**${column.name}** is skewed: mean ${numberText(figure.mean, column.sign)}, median ${numberText(figure.median, column.sign)}; ${side}.`
    })
}

function shareFindings(columns: Column[], figures: Figures[]): string[] {
  return columns
    .flatMap((column, at) => {
      const figure = figures[at] as WordFigures
      const [first] = isWord(column) ? (figure.top ?? []) : []
      const dominant =
        first &&
        column.type !== 'empty' &&
        figure.distinct > 1 &&
        first.share >= Math.max(0.5, 1.5 / figure.distinct)
      return dominant
        ? [`Most rows (${Math.round(first.share * 100)} %) have **${column.name}** = ${first.value}.`]
        : []
    })
    .slice(0, perKind)
}

function missingFindings(columns: Column[], rows: number): string[] {
  return columns
    .filter(({ missing }) => missing > 0)
    .sort((a, b) => b.missing - a.missing)
    .slice(0, perKind)
    .map((column) => {
      const share = Math.round((column.missing / rows) * 100)
      const misfits =
        column.misfits.length > 0
          ? ` Among them are cells that are not of type ${column.type}: ${column.misfits
              .slice(0, 3)
              .map((cell) => `"${cell.slice(0, 30)}"`)
              .join(', ')}.`
          : ''
      if (column.missing === rows) return `**${column.name}** is empty.`
      return `**${column.name}** is missing in ${column.missing} of ${rows} rows (${share < 1 ? 'under 1' : share} %).${misfits}`
    })
}

function constantFindings(columns: Column[], figures: Figures[]): string[] {
  return columns.flatMap((column, at) => {
    const figure = figures[at]
    if (!figure || figure.count < 2) return []
    if ('distinct' in figure && figure.distinct === 1)
      return [`**${column.name}** is the same in every row: ${figure.top[0]?.value}.`]
    if ('min' in figure && figure.min === figure.max)
      return [`**${column.name}** is the same in every row: ${figure.min}.`]
    return []
  })
}
