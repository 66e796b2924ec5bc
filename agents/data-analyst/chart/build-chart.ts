import type { Plan } from '../choose.ts'
import type { Chart } from './chart.ts'
import { bars } from './chart-bars.ts'
import { lines, linesByGroup } from './chart-lines.ts'
import { box, heatmap, histogram, scatter } from './chart-numbers.ts'

/** Computes the data for the planned chart. Returns undefined if no row is complete. */
export function buildChart(plan: Plan): Chart | undefined {
  switch (plan.kind) {
    case 'line':
      return plan.by ? linesByGroup(plan, plan.by) : lines(plan)
    case 'bar':
    case 'pie':
      return bars(plan)
    case 'histogram':
      return histogram(plan)
    case 'scatter':
      return scatter(plan)
    case 'box':
      return box(plan)
    default:
      return heatmap(plan)
  }
}
