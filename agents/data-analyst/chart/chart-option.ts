import type { Chart } from './chart.ts'
import { type Drawing, size } from './drawing.ts'
import { bar, pie } from './option-bars.ts'
import { line } from './option-lines.ts'
import { box, heatmap, histogram, scatter } from './option-numbers.ts'

/** Draws a chart with the function for its type. */
export function drawingOf(chart: Chart): Drawing {
  switch (chart.kind) {
    case 'line':
      return { ...size, option: line(chart) }
    case 'bar':
      return bar(chart)
    case 'pie':
      return { ...size, option: pie(chart) }
    case 'histogram':
      return { ...size, option: histogram(chart) }
    case 'scatter':
      return { ...size, option: scatter(chart) }
    case 'box':
      return { ...size, option: box(chart) }
    default:
      return heatmap(chart)
  }
}
