import type { Align, Span } from '../document.ts'
import { breakLines, type Line } from './lines.ts'
import type { Column, Sheet } from './sheet.ts'
import type { Color, TextStyle } from './style.ts'

export interface TextLook {
  style: TextStyle
  color?: Color
  align?: Align
  /** Code inside a panel has no additional background. */
  inPanel?: true
}

/** Draws lines, with at least two lines of a paragraph on each side of a page break. */
export function drawText(sheet: Sheet, spans: Span[], column: Column, look: TextLook): void {
  const lines = breakLines(spans, column.width, look.style.size, sheet.canvas)
  let left = lines.length
  for (const line of lines) {
    const begins = left === lines.length
    const together = (begins && left > 1) || left === 2 ? Math.min(left, left === 3 ? 3 : 2) : 1
    sheet.need(look.style.leading * together)
    drawLine(sheet, line, column, look)
    sheet.y += look.style.leading
    left -= 1
  }
}

/** Draws one line with its top at `sheet.y`. */
export function drawLine(sheet: Sheet, line: Line, column: Column, look: TextLook): void {
  const { size, leading } = look.style
  const spare = column.width - line.width
  const x = column.x + (look.align === 'right' ? spare : look.align === 'center' ? spare / 2 : 0)
  const baseline = sheet.y + (leading - size) / 2 + size * 0.82
  for (const run of line.runs) drawRun(sheet, run, x + run.x, baseline, look)
}

function drawRun(sheet: Sheet, run: Line['runs'][number], x: number, baseline: number, look: TextLook): void {
  const { canvas } = sheet
  const { span, size, face, text, width } = run
  const { size: textSize, leading } = look.style
  if (span.mono === true && look.inPanel !== true)
    canvas.box(x - 1.2, baseline - textSize * 0.83, width + 2.4, textSize * 1.12, 'panel', 2)
  const color = span.link === undefined ? (look.color ?? 'ink') : 'link'
  canvas.text(text, { x, baseline, face, size, color })
  const middle = baseline - textSize * 0.24
  if (span.strike === true) canvas.line([x, middle], [x + width, middle], color, 0.7)
  if (span.link !== undefined) canvas.link(x, baseline - leading * 0.7, width, leading, span.link)
}
