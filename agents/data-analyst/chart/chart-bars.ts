import { clean } from '../statistics/describe.ts'
import { type Aggregate, aggregated, aggregateOf, grouped } from '../statistics/group.ts'
import type { NumberColumn, WordColumn } from '../table/columns.ts'
import { calendarOrder } from './calendar.ts'
import type { Chart } from './chart.ts'
import { axis, listed, nameOf, type PlanOf, upperFirst } from './chart-words.ts'

/** Maximum number of bars; the smallest ones are omitted with a note. */
const barsMax = 20
const slicesMax = 8

/** One bar per group, or one per group and measure. */
export function bars({ kind, category, measures, aggregate, top }: PlanOf<'bar' | 'pie'>): Chart | undefined {
  const drawn = measures.length > 0 && aggregate !== 'count' ? measures : [undefined]
  const series = drawn.map((measure) => seriesOf(category, measure, aggregate))
  const [first] = series
  if (!first || first.values.size === 0) return undefined
  const all = [...first.values.keys()]
  const order = top ? undefined : calendarOrder(all)
  const value = (name: string) => first.values.get(name) ?? 0
  const sorted = all.sort(order ? (a, b) => order(a) - order(b) : (a, b) => value(b) - value(a))
  const single = series.length === 1
  const title = upperFirst(
    `${single ? first.name : listed(drawn.map((measure) => measure?.name ?? 'rows'))} by ${category.name}`,
  )
  if (kind === 'pie' && single && sorted.every((name) => value(name) >= 0)) {
    return { kind: 'pie', title, slices: slicesOf(sorted.map((name) => ({ name, value: value(name) }))) }
  }
  const names = sorted.slice(0, Math.min(top ?? barsMax, barsMax))
  return {
    kind: 'bar',
    title,
    ...(names.length < sorted.length && { subtitle: `the ${names.length} largest of ${sorted.length}` }),
    x: { name: category.name },
    y: axis({ name: single ? first.name : '', sign: drawn[0]?.sign }),
    names,
    series: series.map(({ name, values }) => ({
      name,
      values: names.map((group) => values.get(group) ?? null),
    })),
    ordered: order !== undefined,
  }
}

function seriesOf(category: WordColumn, measure: NumberColumn | undefined, aggregate: Aggregate | undefined) {
  const how = measure ? (aggregate ?? aggregateOf(measure)) : 'count'
  const groups = [...grouped(category.values, measure?.values)]
  const single = groups.every(([, values]) => values.length === 1)
  const values = new Map(groups.map(([group, values]) => [group, clean(aggregated(values, how))]))
  return { name: nameOf(how, measure, single), values }
}

function slicesOf(sorted: { name: string; value: number }[]) {
  if (sorted.length <= slicesMax) return sorted
  const rest = sorted.slice(slicesMax - 1)
  const others = {
    name: `${rest.length} others`,
    value: clean(rest.reduce((sum, { value }) => sum + value, 0)),
  }
  return [...sorted.slice(0, slicesMax - 1), others]
}
