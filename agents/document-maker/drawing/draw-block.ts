import type { Attachment, Block } from '../document.ts'
import { drawCode } from './draw-code.ts'
import { drawImage } from './draw-image.ts'
import { drawList } from './draw-list.ts'
import { drawTable } from './draw-table.ts'
import { drawText } from './draw-text.ts'
import { breakLines } from './lines.ts'
import type { Column, Sheet } from './sheet.ts'
import { body, cell, code, headings, narrowest, quoteIndent, type TextStyle } from './style.ts'

export interface Where {
  /** Nesting depth of lists and quotes. */
  depth: number
  /** Whether to omit the space between paragraphs, as in a tight list. */
  tight?: boolean
  attachments?: Attachment[]
  /** Called when the position of the first line is known, to draw the list marker. */
  onFirstLine?: () => void
  /** Called for each heading when its position is known. */
  onHeading?: (heading: Extract<Block, { kind: 'heading' }>) => void
}

export function drawBlocks(sheet: Sheet, blocks: Block[], column: Column, where: Where): void {
  let onFirstLine = where.onFirstLine
  for (const [place, block] of blocks.entries()) {
    if (block.kind === 'heading') beforeHeading(sheet, block, blocks[place + 1], column)
    else sheet.need(leastHeight(sheet, block, column) + introduced(sheet, block, blocks[place + 1], column))
    onFirstLine?.()
    onFirstLine = undefined
    drawBlock(sheet, block, column, where)
  }
  // An empty entry still has a marker and a line.
  if (onFirstLine !== undefined) {
    onFirstLine()
    sheet.y += body.leading
  }
}

function drawBlock(sheet: Sheet, block: Block, column: Column, where: Where): void {
  switch (block.kind) {
    case 'heading':
      return drawHeading(sheet, block, column, where)
    case 'paragraph':
      drawText(sheet, block.spans, column, { style: body })
      sheet.y += where.tight === true ? 1 : body.after
      return
    case 'list':
      if (where.tight === true) sheet.y += 1
      drawList(sheet, block, column, where.depth, (blocks, inner, onFirstLine) => {
        drawBlocks(sheet, blocks, inner, {
          ...where,
          depth: where.depth + 1,
          tight: !block.loose,
          onFirstLine,
        })
      })
      if (where.tight !== true) sheet.y += block.loose ? 0 : body.after
      return
    case 'table':
      return drawTable(sheet, block, column)
    case 'code':
      return drawCode(sheet, block.text, column)
    case 'quote':
      return drawQuote(sheet, block.blocks, column, where)
    case 'image':
      return drawImage(sheet, block, column, where.attachments ?? [])
    case 'rule':
      sheet.space(6)
      sheet.canvas.line([column.x, sheet.y], [column.x + column.width, sheet.y], 'line', 0.8)
      sheet.y += body.after + 8
  }
}

const styleOfHeading = (level: number): TextStyle => headings[level - 1] ?? body

/** Adds space, or starts a new page if the heading would be the last block on this page. */
function beforeHeading(
  sheet: Sheet,
  heading: Extract<Block, { kind: 'heading' }>,
  next: Block | undefined,
  column: Column,
): void {
  const style = styleOfHeading(heading.level)
  const lines = breakLines(heading.spans, column.width, style.size, sheet.canvas).length
  const following = next === undefined ? 0 : leastHeight(sheet, next, column)
  const wanted = lines * style.leading + style.after + following
  if (sheet.room < style.before + Math.min(wanted, sheet.height / 2) && !sheet.atTop) sheet.newPage()
  sheet.space(style.before)
}

function drawHeading(
  sheet: Sheet,
  heading: Extract<Block, { kind: 'heading' }>,
  column: Column,
  where: Where,
): void {
  const style = styleOfHeading(heading.level)
  where.onHeading?.(heading)
  const small = heading.level >= 5
  const spans = heading.spans.map((span) =>
    small ? { ...span, italic: true as const } : { ...span, bold: true as const },
  )
  drawText(sheet, spans, column, { style, color: small ? 'soft' : 'ink' })
  if (heading.level === 1) {
    sheet.canvas.line([column.x, sheet.y + 4], [column.x + column.width, sheet.y + 4], 'line', 0.8)
    sheet.y += 5
  }
  sheet.y += style.after
}

function drawQuote(sheet: Sheet, blocks: Block[], column: Column, where: Where): void {
  const narrow = column.width - quoteIndent < narrowest
  const inner = narrow ? column : { x: column.x + quoteIndent, width: column.width - quoteIndent }
  const bar = (top: number, bottom: number) => {
    if (!narrow && bottom > top) sheet.canvas.box(column.x + 2, top, 2.5, bottom - top, 'line', 1.2)
  }
  const { onFirstLine: _, ...inside } = where
  sheet.withEdge(bar, () => {
    drawBlocks(sheet, blocks, inner, { ...inside, tight: false, depth: where.depth + 1 })
    sheet.y -= Math.min(body.after, 6)
  })
  sheet.y += body.after + 6
}

/** Keeps an introduction such as “The following:” on the same page as the next block. */
function introduced(sheet: Sheet, block: Block, next: Block | undefined, column: Column): number {
  const announces = block.kind === 'paragraph' && /:\s*$/.test(block.spans.at(-1)?.text ?? '')
  return announces && next !== undefined ? body.after + leastHeight(sheet, next, column) : 0
}

/** Height of the part of a block that must be on the same page as the preceding heading. */
function leastHeight(sheet: Sheet, block: Block, column: Column): number {
  switch (block.kind) {
    case 'heading':
      return styleOfHeading(block.level).leading + 2 * body.leading
    case 'table':
      return 3 * (cell.leading + 8)
    case 'code':
      return Math.min(3, block.text.split('\n', 3).length) * code.leading + 16
    case 'image':
      return Math.min(sheet.height / 3, column.width / 3)
    case 'paragraph':
      return body.leading * Math.min(2, breakLines(block.spans, column.width, body.size, sheet.canvas).length)
    case 'rule':
      return body.leading
    default:
      return 2 * body.leading
  }
}
