import type { Canvas } from './canvas.ts'

/** Adds the headings as bookmarks, nested by level. */
export class Outline {
  readonly #open: { level: number; entry: PDFKit.PDFOutline }[]

  constructor(canvas: Canvas) {
    this.#open = [{ level: 0, entry: canvas.outline() }]
  }

  add(text: string, level: number): void {
    while ((this.#open.at(-1)?.level ?? 0) >= level) this.#open.pop()
    const parent = this.#open.at(-1)?.entry
    if (parent !== undefined)
      this.#open.push({ level, entry: parent.addItem(text === '' ? '–' : text.slice(0, 200).toWellFormed()) })
  }
}
