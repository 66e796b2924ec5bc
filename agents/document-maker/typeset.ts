import type { Attachment, Document, Meta } from './document.ts'
import { Canvas } from './drawing/canvas.ts'
import { drawBlocks } from './drawing/draw-block.ts'
import { drawText } from './drawing/draw-text.ts'
import { faceOf } from './drawing/faces.ts'
import { Outline } from './drawing/outline.ts'
import { Sheet } from './drawing/sheet.ts'
import { body, footer, footerBaseline, margins, subtitle, title } from './drawing/style.ts'
import { plainText } from './markdown/inline.ts'
import { readMarkdown } from './markdown/read-markdown.ts'

export const maxPages = 500

export interface Job {
  markdown: string
  attachments: Attachment[]
  /** Options that override the front matter. */
  wishes: Meta
}

export interface Typeset {
  pdf: Uint8Array
  /** The title, or else the first heading. */
  name: string | undefined
  pages: number
  /** Up to 20 characters that have no glyph and are drawn as boxes. */
  missing: string[]
}

/** @throws TooManyPages */
export async function typeset(job: Job): Promise<Typeset> {
  const document = readMarkdown(job.markdown, job.wishes)
  const canvas = new Canvas(document.meta, document.name)
  draw(document, canvas, job.attachments)
  const missing = [...canvas.missing].slice(0, 20)
  return { pdf: await canvas.finish(), name: document.name, pages: canvas.pages, missing }
}

/** @throws TooManyPages */
export function draw(document: Document, canvas: Canvas, attachments: Attachment[]): void {
  const sheet = new Sheet(canvas, maxPages)
  drawTitle(sheet, document)
  const outline = new Outline(canvas)
  drawBlocks(sheet, document.blocks, sheet.column, {
    depth: 0,
    attachments,
    onHeading: ({ spans, level, anchor }) => {
      canvas.anchor(anchor, sheet.y - 8)
      outline.add(plainText(spans), level)
    },
  })
  drawFooters(sheet, document)
}

function drawTitle(sheet: Sheet, { meta }: Document): void {
  const below = [meta.author, meta.date].filter((line) => line !== undefined).join('  ·  ')
  if (meta.title === undefined && meta.subtitle === undefined && below === '') return
  const { column } = sheet
  if (meta.title !== undefined) drawText(sheet, [{ text: meta.title, bold: true }], column, { style: title })
  if (meta.title !== undefined) sheet.y += title.after
  if (meta.subtitle !== undefined)
    drawText(sheet, [{ text: meta.subtitle }], column, { style: subtitle, color: 'soft' })
  if (meta.subtitle !== undefined) sheet.y += subtitle.after
  if (below !== '') drawText(sheet, [{ text: below }], column, { style: body, color: 'soft' })
  sheet.canvas.box(column.x, sheet.y + 10, 46, 2.4, 'accent')
  sheet.y += 26
}

function drawFooters({ canvas, column }: Sheet, { name }: Document): void {
  const baseline = canvas.height - footerBaseline
  const right = canvas.width - margins.right
  const face = faceOf({})
  for (let page = 0; page < canvas.pages; page += 1) {
    canvas.turnTo(page)
    const number = `${page + 1} / ${canvas.pages}`
    const width = canvas.measure(number, face, footer.size)
    canvas.text(number, { x: right - width, baseline, face, size: footer.size, color: 'soft' })
    let x = column.x
    for (const run of canvas.runsOf(shortened(name ?? ''), face)) {
      canvas.text(run.text, { x, baseline, face: run.face, size: footer.size, color: 'soft' })
      x += canvas.measure(run.text, run.face, footer.size)
    }
  }
}

const shortened = (text: string): string =>
  text.length > 80 ? `${text.slice(0, 79).toWellFormed().replace('\uFFFD', '')}…` : text
