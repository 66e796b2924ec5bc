import type { Block, ListItem } from '../document.ts'
import type { Column, Sheet } from './sheet.ts'
import { body, listIndent, narrowest } from './style.ts'

type List = Extract<Block, { kind: 'list' }>

const bullets = ['•', '–', '◦'] as const

/** Draws the content of an entry, and calls `onFirstLine` when the position of its first line is known. */
export type DrawEntry = (blocks: Block[], column: Column, onFirstLine: () => void) => void

export function drawList(
  sheet: Sheet,
  list: List,
  column: Column,
  depth: number,
  drawEntry: DrawEntry,
): void {
  const last = list.start + list.items.length - 1
  const widest = list.ordered ? sheet.canvas.measure(`${last}.`, 'regular', body.size) + 7 : 0
  const indent = Math.max(listIndent, widest)
  const inner =
    column.width - indent < narrowest ? column : { x: column.x + indent, width: column.width - indent }
  for (const [place, item] of list.items.entries()) {
    sheet.need(body.leading)
    const drawMark = () => mark(sheet, list, item, { x: column.x, width: indent }, list.start + place, depth)
    drawEntry(item.blocks, inner, drawMark)
    if (!list.loose && place < list.items.length - 1) sheet.y += 2
  }
}

function mark(sheet: Sheet, list: List, item: ListItem, column: Column, number: number, depth: number): void {
  const { canvas } = sheet
  const baseline = sheet.y + (body.leading - body.size) / 2 + body.size * 0.82
  if (item.done !== undefined) {
    const side = 8
    const [x, y] = [column.x + 2.5, baseline - side + 0.6]
    canvas.frame(x, y, side, item.done ? 'accent' : 'soft')
    if (!item.done) return
    canvas.line([x + 1.7, y + 4.2], [x + 3.4, y + 6], 'accent', 1.1)
    canvas.line([x + 3.4, y + 6], [x + 6.4, y + 1.9], 'accent', 1.1)
    return
  }
  const text = list.ordered ? `${number}.` : (bullets[depth % bullets.length] as string)
  const [run] = canvas.runsOf(text, 'regular')
  if (run === undefined) return
  const width = canvas.measure(run.text, run.face, body.size)
  const x = list.ordered ? column.x + column.width - 6 - width : column.x + 5
  canvas.text(run.text, { x, baseline, face: run.face, size: body.size, color: 'soft' })
}
