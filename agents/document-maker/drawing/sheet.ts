import type { Canvas } from './canvas.ts'
import { margins } from './style.ts'

/** Thrown if a document exceeds the maximum number of pages. */
export class TooManyPages extends Error {
  override readonly name = 'TooManyPages'
}

/** Column of a block: left edge and width. */
export interface Column {
  x: number
  width: number
}

/** Position of the next line. */
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

  /** Usable height of a page. */
  get height(): number {
    return this.bottom - margins.top
  }

  get room(): number {
    return this.bottom - this.y
  }

  get atTop(): boolean {
    return this.y <= margins.top
  }

  /** Adds space between blocks, except at the top of a page. */
  space(height: number): void {
    if (!this.atTop) this.y += height
  }

  /** Starts a new page unless this height fits on the current one. */
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

  /** Runs `inside`, then draws next to it on every page it covers. */
  withEdge(draw: (top: number, bottom: number) => void, inside: () => void): void {
    const edge = { top: this.y, draw }
    this.#edges.push(edge)
    inside()
    this.#edges.pop()
    draw(edge.top, this.y)
  }
}
