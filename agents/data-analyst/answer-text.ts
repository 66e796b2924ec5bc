import type { Chart } from './chart/chart.ts'
import type { Plan } from './choose.ts'
import { numberText } from './number-text.ts'
import { periodText } from './period-text.ts'
import type { Request } from './request.ts'
import { describeNumbers } from './statistics/describe.ts'
import { aggregated } from './statistics/group.ts'
import { present } from './table/columns.ts'

/** Answers the question in one sentence with the figures of the chart. */
export function answerText(plan: Plan, chart: Chart, request: Request): string | undefined {
  switch (chart.kind) {
    case 'bar':
    case 'pie': {
      const bars = chart.kind === 'bar' ? barsOf(chart) : chart.slices
      if (!bars) return undefined
      const sign = chart.kind === 'bar' ? chart.y.sign : undefined
      const [high, low] = [
        bars.reduce((a, b) => (b.value > a.value ? b : a)),
        bars.reduce((a, b) => (b.value < a.value ? b : a)),
      ]
      if (bars.length < 2) return `${chart.title}: ${high.name} ${numberText(high.value, sign)}.`
      return `**${chart.title}**: highest for ${high.name} (${numberText(high.value, sign)}), lowest${chart.subtitle ? ' of those shown' : ''} for ${low.name} (${numberText(low.value, sign)}).`
    }
    case 'line':
      return lineText(chart)
    case 'scatter':
      return `**${chart.title}**${chart.subtitle ? `: ${chart.subtitle}` : ''}.`
    case 'histogram':
      return plan.kind === 'histogram' ? figureText(plan.measure, request) : undefined
    default:
      return undefined
  }
}

function lineText(chart: Extract<Chart, { kind: 'line' }>): string | undefined {
  const { sign } = chart.y
  const sentences = chart.series.map(({ name, points }) => {
    const high = points.reduce((a, b) => (b[1] > a[1] ? b : a))
    const low = points.reduce((a, b) => (b[1] < a[1] ? b : a))
    const of = chart.series.length > 1 ? `${name}: ` : ''
    if (high[1] === low[1]) return `${of}always ${numberText(high[1], sign)}`
    return `${of}highest in ${periodText(high[0], chart.period)} (${numberText(high[1], sign)}), lowest in ${periodText(low[0], chart.period)} (${numberText(low[1], sign)})`
  })
  return `**${chart.title}**: ${sentences.join('; ')}.`
}

function figureText(
  measure: Extract<Plan, { kind: 'histogram' }>['measure'],
  { aggregate }: Request,
): string {
  const { mean, median, min, max } = describeNumbers(measure)
  const text = (value: number) => numberText(value, measure.sign)
  if (!aggregate)
    return `**${measure.name}** lies between ${text(min)} and ${text(max)}, half of it up to ${text(median)}; its mean is ${text(mean)}.`
  const names = {
    mean: 'mean',
    median: 'median',
    sum: 'sum',
    min: 'smallest value',
    max: 'largest value',
    count: 'number of values',
  }
  const value = aggregated(present(measure.values), aggregate)
  return `The ${names[aggregate]} of **${measure.name}** is **${aggregate === 'count' ? value : text(value)}**.`
}

/** Describes the bars. With several measures, no single bar is the highest. */
function barsOf({ names, series }: Extract<Chart, { kind: 'bar' }>) {
  const [only, second] = series
  if (!only || second) return undefined
  return names.map((name, at) => ({ name, value: only.values[at] ?? 0 }))
}
