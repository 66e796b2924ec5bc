import type { Forecast } from './forecast.ts'
import { numberText } from './number-text.ts'
import { labelOf } from './series.ts'

const shownMax = 120
const colors = { line: '#1c3f5f', ahead: '#b3541e', band: '#f3d9c6', grid: '#dddddd', text: '#444444' }

interface Box {
  left: number
  top: number
  width: number
  height: number
}

/** Draws the latest values, the forecast and its band as vector lines. */
export function drawChart(pdf: PDFKit.PDFDocument, { series, steps }: Forecast, box: Box): void {
  const past = series.values.slice(-shownMax)
  const all = [...past, ...steps.flatMap(({ low, high }) => [low, high])]
  const ticks = ticksOf(Math.min(...all), Math.max(...all))
  const [bottom = 0, top = 1] = [ticks[0], ticks.at(-1)]
  const count = past.length + steps.length
  const x = (at: number) => box.left + (at / Math.max(count - 1, 1)) * box.width
  const y = (value: number) => box.top + box.height * (1 - (value - bottom) / (top - bottom))
  pdf.fontSize(8).lineWidth(0.5)
  for (const tick of ticks) {
    pdf
      .moveTo(box.left, y(tick))
      .lineTo(box.left + box.width, y(tick))
      .stroke(colors.grid)
    pdf
      .fillColor(colors.text)
      .text(numberText(tick), box.left - 58, y(tick) - 4, { width: 52, align: 'right' })
  }
  const from = past.length - 1
  const band = [
    ...steps.map(({ high }, at) => [x(from + 1 + at), y(high)]),
    ...steps.map(({ low }, at) => [x(from + 1 + at), y(low)]).reverse(),
  ]
  pdf.polygon([x(from), y(past[from] ?? 0)], ...(band as [number, number][])).fill(colors.band)
  line(
    pdf,
    past.map((value, at) => [x(at), y(value)]),
    colors.line,
  )
  line(
    pdf,
    [
      [x(from), y(past[from] ?? 0)],
      ...steps.map(({ value }, at): [number, number] => [x(from + 1 + at), y(value)]),
    ],
    colors.ahead,
  )
  const first = labelOf(series.times.at(-past.length) ?? 0, series.unit)
  const below = box.top + box.height + 6
  pdf.fillColor(colors.text).text(first, box.left, below, { lineBreak: false })
  pdf.text(steps.at(-1)?.period ?? '', box.left + box.width - 80, below, { width: 80, align: 'right' })
}

function line(pdf: PDFKit.PDFDocument, points: [number, number][], color: string): void {
  for (const [at, [left, top]] of points.entries()) {
    if (at === 0) pdf.moveTo(left, top)
    else pdf.lineTo(left, top)
  }
  pdf.lineWidth(1.6).lineJoin('round').stroke(color)
}

/** Four to seven rounded axis ticks that cover all values. */
export function ticksOf(least: number, most: number): number[] {
  const span = most - least || Math.abs(most) || 1
  const rough = span / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 2.5, 5, 10].find((one) => one * power >= rough) ?? 10) * power
  const first = Math.floor(least / step)
  const count = Math.max(1, Math.ceil(most / step) - first)
  return Array.from({ length: count + 1 }, (_, at) => (first + at) * step)
}
