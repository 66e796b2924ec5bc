import type { Canvas } from './canvas.ts'
import { margins } from './style.ts'

/** The document has more pages than are made. */
export class TooManyPages extends Error {
  override readonly name = 'TooManyPages'
}

/** Where a block may write: its left edge and its width. */
export interface Column {
  x: number
  width: number
}

/** Where on which page the next line goes. */
export class Sheet {
  readonly canvas: Canvas
  readonly column: Column
  readonly #maxPages: number
  readonly #edges: { top: number; draw: (top: number, bottom: number) => void }[] = []
  y = 0

  constructor(canvas: Canvas, maxPages: number) {
    this.canvas = canvas
    this.#maxPages = maxPages
    this.column = { x: margins.left, width: canvas.width - margins.left - margins.right }
    this.newPage()
  }

  get bottom(): number {
    return this.canvas.height - margins.bottom
  }

  /** Height of an empty page. */
  get height(): number {
    return this.bottom - margins.top
  }

  get room(): number {
    return this.bottom - this.y
  }

  get atTop(): boolean {
    return this.y <= margins.top
  }

  /** White space between blocks; at the top of a page there is none. */
  space(height: number): void {
    if (!this.atTop) this.y += height
  }

  /** Turns the page unless so much fits on it. */
  need(height: number): void {
    if (this.room < height && !this.atTop) this.newPage()
  }

  newPage(): void {
    if (this.canvas.pages >= this.#maxPages) throw new TooManyPages()
    for (const edge of this.#edges) edge.draw(edge.top, Math.min(this.y, this.bottom))
    this.canvas.addPage()
    this.y = margins.top
    for (const edge of this.#edges) edge.top = this.y
  }

  /** Runs `inside`, and draws beside it on every page that it reaches. */
  withEdge(draw: (top: number, bottom: number) => void, inside: () => void): void {
    const edge = { top: this.y, draw }
    this.#edges.push(edge)
    inside()
    this.#edges.pop()
    draw(edge.top, this.y)
  }
}
