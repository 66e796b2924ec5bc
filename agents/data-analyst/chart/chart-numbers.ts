import { linearRegression, quantileSorted } from 'simple-statistics'
import { clean } from '../statistics/describe.ts'
import { grouped } from '../statistics/group.ts'
import { pearson } from '../statistics/relations.ts'
import { present } from '../table/columns.ts'
import type { Bin, Box, Chart } from './chart.ts'
import { axis, type PlanOf } from './chart-words.ts'

/** Maximum number of points, because more would overlap. Beyond it, only every n-th point is drawn, with a note. */
const pointsMax = 2000
const boxesMax = 12
const dotsMax = 60

export function histogram({ measure }: PlanOf<'histogram'>): Chart | undefined {
  const sorted = present(measure.values).sort((a, b) => a - b)
  if (sorted.length === 0) return undefined
  const title = `Distribution of ${measure.name}`
  return {
    kind: 'histogram',
    title,
    x: axis(measure),
    y: { name: 'rows' },
    bins: binsOf(sorted),
    median: clean(quantileSorted(sorted, 0.5)),
  }
}

/** Divides values into 5 to 40 bins with round borders, following the Freedman–Diaconis rule. */
export function binsOf(sorted: number[]): Bin[] {
  const [min, max] = [sorted[0] ?? 0, sorted.at(-1) ?? 0]
  if (min === max) return [{ from: min - 0.5, to: min + 0.5, count: sorted.length }]
  const middle = quantileSorted(sorted, 0.75) - quantileSorted(sorted, 0.25)
  const ideal = middle > 0 ? (2 * middle) / Math.cbrt(sorted.length) : (max - min) / Math.sqrt(sorted.length)
  const whole = sorted.every(Number.isInteger)
  const width = roundWidth(Math.min(Math.max(ideal, (max - min) / 40), (max - min) / 5), whole)
  const start = Math.floor(min / width) * width
  const bins = Array.from({ length: Math.floor((max - start) / width + 1e-9) + 1 }, (_none, at) => ({
    from: clean(start + at * width),
    to: clean(start + (at + 1) * width),
    count: 0,
  }))
  for (const value of sorted) {
    const bin = bins[Math.min(bins.length - 1, Math.floor((value - start) / width + 1e-9))]
    if (bin) bin.count += 1
  }
  return bins
}

function roundWidth(width: number, whole: boolean): number {
  const power = 10 ** Math.floor(Math.log10(width))
  const round = ([1, 2, 2.5, 5, 10].find((step) => step * power >= width * 0.999) ?? 10) * power
  return whole ? Math.max(1, Math.round(round)) : round
}

export function scatter({ x, y }: PlanOf<'scatter'>): Chart | undefined {
  const all = x.values.flatMap((value, row): [number, number][] => {
    const other = y.values[row]
    return value === null || other === null || other === undefined ? [] : [[value, other]]
  })
  if (all.length === 0) return undefined
  const step = Math.ceil(all.length / pointsMax)
  const points = all.filter((_point, at) => at % step === 0)
  const { r } = pearson(x.values, y.values)
  const { m, b } = linearRegression(all)
  const notes = [
    r === undefined ? '' : `r = ${r.toFixed(2)}`,
    step > 1 ? `${points.length} of ${all.length} rows drawn` : '',
  ].filter(Boolean)
  return {
    kind: 'scatter',
    title: `${x.name} and ${y.name}`,
    ...(notes.length > 0 && { subtitle: notes.join(' · ') }),
    x: axis(x),
    y: axis(y),
    points,
    ...(r !== undefined && Math.abs(r) >= 0.3 && all.length > 2 && { line: { slope: m, intercept: b } }),
  }
}

export function box({ measure, by }: PlanOf<'box'>): Chart | undefined {
  const groups = by
    ? [...grouped(by.values, measure.values)]
    : [[measure.name, present(measure.values)] as const]
  const boxes = groups
    .filter(([, values]) => values.length > 0)
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, boxesMax)
    .map(([name, values]) => boxOf(name, values))
  if (boxes.length === 0) return undefined
  const title = by ? `${measure.name} by ${by.name}` : `Spread of ${measure.name}`
  return {
    kind: 'box',
    title,
    subtitle: 'boxes: the middle half and the median; dots: outliers',
    x: { name: by?.name ?? '' },
    y: axis(measure),
    boxes,
  }
}

function boxOf(name: string, values: number[]): Box {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => clean(quantileSorted(sorted, share))
  const reach = 1.5 * (at(0.75) - at(0.25))
  const usual = sorted.filter((value) => value >= at(0.25) - reach && value <= at(0.75) + reach)
  const outside = sorted.filter((value) => value < at(0.25) - reach || value > at(0.75) + reach)
  const step = Math.ceil(outside.length / dotsMax)
  return {
    name,
    five: [usual[0] ?? at(0), at(0.25), at(0.5), at(0.75), usual.at(-1) ?? at(1)],
    outliers: outside.filter((_value, place) => place % step === 0),
  }
}

export function heatmap({ measures }: PlanOf<'heatmap'>): Chart {
  const cells = measures.flatMap((a, x) =>
    measures.flatMap((b, y): [number, number, number][] => {
      const r = a === b ? 1 : pearson(a.values, b.values).r
      return r === undefined ? [] : [[x, y, Math.round(r * 100) / 100]]
    }),
  )
  return { kind: 'heatmap', title: 'Correlations', names: measures.map(({ name }) => name), cells }
}
