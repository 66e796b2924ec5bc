import { drawLine } from './draw-text.ts'
import { withoutInvisible } from './faces.ts'
import { breakLines, type Line } from './lines.ts'
import type { Column, Sheet } from './sheet.ts'
import { body, code, monoScale } from './style.ts'

const padding = { x: 11, y: 8 }
const style = { ...code, size: code.size / monoScale }

/** Draws code in a panel and wraps lines that are too long. */
export function drawCode(sheet: Sheet, text: string, column: Column): void {
  const inner = { x: column.x + padding.x, width: column.width - 2 * padding.x }
  const lines = text.split('\n').flatMap((line) => codeLines(line, inner.width, sheet))
  let next = 0
  while (next < lines.length) {
    sheet.need(2 * padding.y + code.leading * Math.min(3, lines.length - next))
    const fit = Math.max(1, Math.floor((sheet.room - 2 * padding.y) / code.leading))
    const part = lines.slice(next, next + fit)
    sheet.canvas.box(column.x, sheet.y, column.width, 2 * padding.y + part.length * code.leading, 'panel', 4)
    sheet.y += padding.y
    for (const line of part) {
      drawLine(sheet, line, inner, { style, inPanel: true })
      sheet.y += code.leading
    }
    sheet.y += padding.y
    next += part.length
    if (next < lines.length) sheet.newPage()
  }
  sheet.y += body.after
}

/** Replaces spaces with non-breaking spaces to preserve them. */
function codeLines(text: string, width: number, sheet: Sheet): Line[] {
  const kept = withoutInvisible(text.replaceAll('\t', '    ')).replaceAll(' ', '\u00A0')
  const lines = breakLines([{ text: kept, mono: true }], width, style.size, sheet.canvas)
  return lines.length > 0 ? lines : [{ runs: [], width: 0 }]
}
