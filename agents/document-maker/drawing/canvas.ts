import Pdf from 'pdfkit'
import type { Meta } from '../document.ts'
import { type Face, fileOf, missingSign, spareOf } from './faces.ts'
import { type Color, colors, pageSizes } from './style.ts'

/** A run of text in one font. */
export interface Run {
  text: string
  face: Face
}

interface FontOfPdfkit {
  font: { hasGlyphForCodePoint(code: number): boolean }
}
export interface Picture {
  width: number
  height: number
}

const cacheMax = 50_000

/** The drawing surface. Only this file uses the PDF library. */
export class Canvas {
  readonly #pdf: PDFKit.PDFDocument
  readonly #fonts = new Map<Face, FontOfPdfkit['font']>()
  readonly #widths = new Map<string, number>()
  readonly #chunks: Buffer[] = []
  readonly #finished: Promise<void>
  readonly width: number
  readonly height: number
  pages = 0
  /** Characters without a glyph in any font. */
  readonly missing = new Set<string>()

  constructor(meta: Meta, name: string | undefined) {
    const [width, height] = pageSizes[meta.pageSize ?? 'a4']
    this.width = width
    this.height = height
    const date = new Date(meta.date ?? Number.NaN)
    const dated = !Number.isNaN(date.getTime())
    this.#pdf = new Pdf({
      size: [width, height],
      margin: 0,
      autoFirstPage: false,
      bufferPages: true,
      lang: meta.lang ?? 'en',
      displayTitle: true,
      info: {
        Producer: 'Parley document-maker',
        Creator: 'Parley document-maker',
        CreationDate: dated ? date : new Date(0),
        ...(name === undefined ? {} : { Title: name }),
        ...(meta.author === undefined ? {} : { Author: meta.author }),
        ...(meta.subject === undefined ? {} : { Subject: meta.subject }),
        ...(meta.keywords === undefined ? {} : { Keywords: meta.keywords }),
      },
    })
    // The library derives the file id from a date, so a fixed date makes the output reproducible.
    // PDF 1.3 has no XMP block, but the library prepares one and fails without a date.
    if (!dated) delete this.#pdf.info.CreationDate
    Object.assign(this.#pdf, { endMetadata: () => undefined })
    this.#pdf.on('data', (chunk: Buffer) => this.#chunks.push(chunk))
    this.#finished = new Promise((resolve, reject) => {
      this.#pdf.on('end', resolve)
      this.#pdf.on('error', reject)
    })
  }

  addPage(): void {
    this.#pdf.addPage()
    this.pages += 1
  }

  /** Switches to an existing page, counted from 0. */
  turnTo(page: number): void {
    this.#pdf.switchToPage(page)
  }

  /** Splits a text wherever a missing glyph requires another font. */
  runsOf(text: string, face: Face): Run[] {
    const runs: Run[] = []
    for (const character of text) {
      const found = this.#faceWith(character, face)
      const drawn = found === undefined ? missingSign : character
      if (found === undefined) this.missing.add(character)
      const last = runs.at(-1)
      const use = found ?? spareOf(face)
      if (last?.face === use) last.text += drawn
      else runs.push({ text: drawn, face: use })
    }
    return runs
  }

  measure(text: string, face: Face, size: number): number {
    const key = `${face} ${text}`
    let width = this.#widths.get(key)
    if (width === undefined) {
      this.#font(face)
      width = this.#pdf.font(face).fontSize(1000).widthOfString(text) / 1000
      if (this.#widths.size >= cacheMax) this.#widths.clear()
      this.#widths.set(key, width)
    }
    return width * size
  }

  text(text: string, at: { x: number; baseline: number; face: Face; size: number; color: Color }): void {
    this.#font(at.face)
    this.#pdf
      .font(at.face)
      .fontSize(at.size)
      .fillColor(colors[at.color])
      .text(text, at.x, at.baseline, { lineBreak: false, baseline: 'alphabetic' })
  }

  line(from: [number, number], to: [number, number], color: Color, width = 0.6): void {
    this.#pdf
      .moveTo(...from)
      .lineTo(...to)
      .lineWidth(width)
      .strokeColor(colors[color])
      .stroke()
  }

  box(x: number, y: number, width: number, height: number, color: Color, radius = 0): void {
    this.#pdf.roundedRect(x, y, width, height, radius).fill(colors[color])
  }

  frame(x: number, y: number, size: number, color: Color): void {
    this.#pdf.roundedRect(x, y, size, size, 1.2).lineWidth(0.8).strokeColor(colors[color]).stroke()
  }

  /** @throws Error if the bytes are not a supported image */
  openImage(bytes: Uint8Array): Picture {
    return (this.#pdf as unknown as { openImage(source: Buffer): Picture }).openImage(Buffer.from(bytes))
  }

  image(picture: Picture, x: number, y: number, width: number, height: number): void {
    this.#pdf.image(picture as never, x, y, { width, height })
  }

  link(x: number, y: number, width: number, height: number, target: string): void {
    if (target.startsWith('#')) this.#pdf.goTo(x, y, width, height, target.slice(1))
    else this.#pdf.link(x, y, width, height, asciiOf(target))
  }

  /** Adds a target for links and outline entries. */
  anchor(name: string, y: number): void {
    this.#pdf.addNamedDestination(name, 'XYZ', 0, y, null as never)
  }

  /** Adds the outline entries, given in document order. */
  outline(): PDFKit.PDFOutline {
    return this.#pdf.outline
  }

  async finish(): Promise<Buffer> {
    this.#pdf.end()
    await this.#finished
    return Buffer.concat(this.#chunks)
  }

  #faceWith(character: string, face: Face): Face | undefined {
    const code = character.codePointAt(0) as number
    if (this.#font(face).hasGlyphForCodePoint(code)) return face
    const spare = spareOf(face)
    if (this.#font(spare).hasGlyphForCodePoint(code)) return spare
    return spare === 'spareBold' && this.#font('spare').hasGlyphForCodePoint(code) ? 'spare' : undefined
  }

  /** Loads a font on first use: most documents need three of the eight. */
  #font(face: Face): FontOfPdfkit['font'] {
    let font = this.#fonts.get(face)
    if (font === undefined) {
      this.#pdf.registerFont(face, fileOf(face))
      this.#pdf.font(face)
      font = (this.#pdf as unknown as { _font: FontOfPdfkit })._font.font
      this.#fonts.set(face, font)
    }
    return font
  }
}

/** Escapes an address to ASCII, as PDF requires, without escaping twice. */
const asciiOf = (address: string): string =>
  address.toWellFormed().replace(/[^\x21-\x7e]/gu, (character) => encodeURIComponent(character))
