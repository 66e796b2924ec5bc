import type { Align, Block, Span } from '../document.ts'
import { drawLine } from './draw-text.ts'
import { breakLines, extent, type Line } from './lines.ts'
import type { Column, Sheet } from './sheet.ts'
import { body, cell, smallCell, type TextStyle } from './style.ts'
import { columnWidths } from './table-widths.ts'

type Table = Extract<Block, { kind: 'table' }>

const padding = { x: 7, y: 4 }

interface Layout {
  style: TextStyle
  columns: Column[]
  align: Align[]
  x: number
  width: number
}

/** Draws a table with its header on every page. Rows that fit on a page are not split. */
export function drawTable(sheet: Sheet, table: Table, column: Column): void {
  const [head = [], ...rows] = table.rows
  const header = head.map((spans) => spans.map((span): Span => ({ ...span, bold: true })))
  const layout = layoutOf(sheet, [header, ...rows], table.align, column)
  const headLines = linesOf(sheet, header, layout)
  const first = rows[0] === undefined ? 0 : heightOf(linesOf(sheet, rows[0], layout), layout)
  sheet.need(Math.min(sheet.height, heightOf(headLines, layout) + first))
  drawHead(sheet, headLines, layout)
  for (const row of rows) {
    const lines = linesOf(sheet, row, layout)
    const height = heightOf(lines, layout)
    if (sheet.room < height && height < sheet.height / 2) {
      sheet.newPage()
      drawHead(sheet, headLines, layout)
    }
    drawRow(sheet, lines, layout, headLines)
  }
  sheet.y += body.after + 3
}

function layoutOf(sheet: Sheet, rows: Span[][][], align: Align[], column: Column): Layout {
  const count = align.length
  const available = column.width - count * 2 * padding.x
  const extents = (style: TextStyle) =>
    align.map((_, place) => {
      // Measures only a sample, because measuring a hundred thousand rows takes longer than drawing them.
      const cells = rows.slice(0, 500).map((row) => extent(row[place] ?? [], style.size, sheet.canvas))
      return {
        least: Math.max(4, ...cells.map((c) => c.least)) + 0.1,
        most: Math.max(4, ...cells.map((c) => c.most)) + 0.1,
      }
    })
  const normal = extents(cell)
  const crowded = normal.reduce((sum, { least }) => sum + least, 0) > available
  const widths = columnWidths(crowded ? extents(smallCell) : normal, Math.max(available, count * 6))
  let x = column.x
  const columns = widths.map((width) => {
    const placed = { x: x + padding.x, width }
    x += width + 2 * padding.x
    return placed
  })
  return { style: crowded ? smallCell : cell, columns, align, x: column.x, width: x - column.x }
}

const linesOf = (sheet: Sheet, row: Span[][], { columns, style }: Layout): Line[][] =>
  columns.map(({ width }, place) => breakLines(row[place] ?? [], width, style.size, sheet.canvas))

const heightOf = (cells: Line[][], { style }: Layout): number =>
  Math.max(1, ...cells.map((lines) => lines.length)) * style.leading + 2 * padding.y

function drawHead(sheet: Sheet, cells: Line[][], layout: Layout): void {
  const height = heightOf(cells, layout)
  sheet.canvas.box(layout.x, sheet.y, layout.width, Math.min(height, sheet.room), 'panel')
  drawCells(sheet, cells, layout, 0, Number.POSITIVE_INFINITY)
  sheet.y += height
  sheet.canvas.line([layout.x, sheet.y], [layout.x + layout.width, sheet.y], 'soft', 0.9)
}

/** Draws a row that is taller than a page, and continues it on the following pages. */
function drawRow(sheet: Sheet, cells: Line[][], layout: Layout, head: Line[][]): void {
  const total = Math.max(1, ...cells.map((lines) => lines.length))
  let done = 0
  while (done < total) {
    const fit = Math.floor((sheet.room - 2 * padding.y) / layout.style.leading)
    if (fit < 1 && !sheet.atTop) {
      sheet.newPage()
      if (heightOf(head, layout) < sheet.height / 2) drawHead(sheet, head, layout)
      continue
    }
    const count = Math.max(1, Math.min(fit, total - done))
    drawCells(sheet, cells, layout, done, done + count)
    sheet.y += count * layout.style.leading + 2 * padding.y
    done += count
    sheet.canvas.line([layout.x, sheet.y], [layout.x + layout.width, sheet.y], 'line', 0.5)
  }
}

function drawCells(sheet: Sheet, cells: Line[][], layout: Layout, from: number, to: number): void {
  const top = sheet.y
  for (const [place, lines] of cells.entries()) {
    const column = layout.columns[place] as Column
    sheet.y = top + padding.y
    for (const line of lines.slice(from, to)) {
      drawLine(sheet, line, column, { style: layout.style, align: layout.align[place] ?? 'left' })
      sheet.y += layout.style.leading
    }
  }
  sheet.y = top
}
