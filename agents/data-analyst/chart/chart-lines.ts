import { aggregated, aggregateOf, byPeriod, fittingPeriod, grouped } from '../statistics/group.ts'
import type { WordColumn } from '../table/columns.ts'
import type { Chart } from './chart.ts'
import { axis, listed, nameOf, type PlanOf, upperFirst } from './chart-words.ts'

/** Maximum number of distinguishable lines; further ones are omitted with a note. */
const linesMax = 6

export function lines({
  date,
  measures,
  aggregate,
  period = fittingPeriod(date),
}: PlanOf<'line'>): Chart | undefined {
  const drawn = measures.length > 0 && aggregate !== 'count' ? measures : [undefined]
  let single = true
  const series = drawn.map((measure) => {
    const how = measure ? (aggregate ?? aggregateOf(measure)) : 'count'
    const { points } = byPeriod(date, measure?.values, how, period)
    single &&= points.length === date.values.length - date.missing
    return { name: measure?.name ?? 'rows', points, how }
  })
  if (!series[0] || series.every(({ points }) => points.length === 0)) return undefined
  const name = drawn.length === 1 ? nameOf(series[0].how, drawn[0], single) : 'value'
  const title =
    drawn.length === 1 ? `${name} by ${period}` : `${listed(series.map((line) => line.name))} by ${period}`
  const sign = drawn[0]?.sign
  return {
    kind: 'line',
    title: upperFirst(title),
    x: { name: date.name },
    y: axis({ name, sign }),
    period,
    series: series.map(({ name, points }) => ({ name, points })),
  }
}

export function linesByGroup(
  { date, measures, aggregate, period = fittingPeriod(date) }: PlanOf<'line'>,
  by: WordColumn,
): Chart | undefined {
  const measure = aggregate === 'count' ? undefined : measures[0]
  const how = measure ? (aggregate ?? aggregateOf(measure)) : 'count'
  const sizes = [...grouped(by.values, measure?.values)].map(([name, values]) => ({
    name,
    size: aggregated(values, how === 'count' ? 'count' : 'sum'),
  }))
  const largest = sizes.sort((a, b) => b.size - a.size).slice(0, linesMax)
  const series = largest.map(({ name }) => {
    const values = date.values.map((_at, row) =>
      by.values[row] === name ? (measure ? (measure.values[row] ?? null) : 1) : null,
    )
    return { name, points: byPeriod(date, values, how, period).points }
  })
  if (series.length === 0) return undefined
  const name = nameOf(how, measure, false)
  const left = sizes.length - largest.length
  return {
    kind: 'line',
    title: upperFirst(`${name} by ${period} and ${by.name}`),
    ...(left > 0 && { subtitle: `the ${largest.length} largest of ${sizes.length}` }),
    x: { name: date.name },
    y: axis({ name, sign: measure?.sign }),
    period,
    series,
  }
}
