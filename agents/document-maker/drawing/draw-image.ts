import type { Attachment, Block } from '../document.ts'
import { drawText } from './draw-text.ts'
import { findImage } from './image.ts'
import type { Column, Sheet } from './sheet.ts'
import { body, caption } from './style.ts'

type ImageBlock = Extract<Block, { kind: 'image' }>

/** Points per screen pixel. */
const pointsPerPixel = 0.75

/** Draws an image centred, limited to the column and most of a page, with its caption below. */
export function drawImage(sheet: Sheet, block: ImageBlock, column: Column, attachments: Attachment[]): void {
  const found = findImage(block.source, attachments)
  const picture = 'bytes' in found ? open(sheet, found.bytes) : undefined
  if (picture === undefined) {
    const why = 'problem' in found ? found.problem : 'damaged'
    const name = block.alt === '' ? 'Image' : `Image “${block.alt}”`
    drawText(sheet, [{ text: `[${name}: ${why}]`, italic: true }], column, { style: body, color: 'soft' })
    sheet.y += body.after
    return
  }
  const [width, height] = [picture.width * pointsPerPixel, picture.height * pointsPerPixel]
  const captionHeight = block.alt === '' ? 0 : caption.leading + 5
  const scale = Math.min(1, column.width / width, (sheet.height * 0.85 - captionHeight) / height)
  sheet.space(3)
  sheet.need(height * scale + captionHeight)
  sheet.canvas.image(
    picture,
    column.x + (column.width - width * scale) / 2,
    sheet.y,
    width * scale,
    height * scale,
  )
  sheet.y += height * scale + 5
  if (block.alt !== '')
    drawText(sheet, [{ text: block.alt }], column, { style: caption, color: 'soft', align: 'center' })
  sheet.y += body.after + 4
}

function open(sheet: Sheet, bytes: Uint8Array) {
  try {
    return sheet.canvas.openImage(bytes)
  } catch {
    return undefined
  }
}
