import type { Span } from '../document.ts'
import type { Run } from './canvas.ts'
import { type Face, faceOf, withoutInvisible } from './faces.ts'
import { monoScale } from './style.ts'

/** A positioned piece of a line; `x` is relative to its left edge. */
export interface PlacedRun extends Run {
  x: number
  width: number
  size: number
  span: Span
}

export interface Line {
  runs: PlacedRun[]
  width: number
}

/** The font metrics that line breaking needs. */
export interface Measure {
  measure(text: string, face: Face, size: number): number
  runsOf(text: string, face: Face): Run[]
}

interface Atom {
  pieces: { run: Run; span: Span; size: number; width: number }[]
  width: number
  kind: 'word' | 'space' | 'break'
}

// Matches spaces, single characters of scripts without spaces, and words, which also end after a hyphen or slash.
const wide = '\\u2E80-\\u9FFF\\uAC00-\\uD7AF\\uF900-\\uFAFF\\uFF00-\\uFFEF'
const chunk = new RegExp(
  `[ \\t\\n]+|[${wide}]|[^ \\t\\n${wide}]+?(?:[-–—/](?=[\\p{L}\\p{N}])|(?=[ \\t\\n${wide}]|$))`,
  'gu',
)

/** Breaks styled text into lines of at most `width`, splitting words that are longer. */
export function breakLines(spans: Span[], width: number, size: number, faces: Measure): Line[] {
  const lines: Line[] = []
  let line: Line = { runs: [], width: 0 }
  let space: Atom | undefined
  const flush = () => {
    lines.push(line)
    line = { runs: [], width: 0 }
    space = undefined
  }
  for (const atom of atomsOf(spans, size, faces)) {
    if (atom.kind === 'break') flush()
    else if (atom.kind === 'space') space = line.runs.length > 0 ? atom : undefined
    else {
      const needed = line.width + (space?.width ?? 0) + atom.width
      if (needed > width && line.runs.length > 0) flush()
      if (space !== undefined) place(line, space)
      space = undefined
      for (const part of atom.width > width ? broken(atom, width, faces) : [atom]) {
        if (line.runs.length > 0 && line.width + part.width > width) flush()
        place(line, part)
      }
    }
  }
  if (line.runs.length > 0) lines.push(line)
  return lines
}

/** Width of the longest word and of the unbroken text. */
export function extent(spans: Span[], size: number, faces: Measure): { least: number; most: number } {
  let least = 0
  let most = 0
  let current = 0
  for (const atom of atomsOf(spans, size, faces)) {
    if (atom.kind === 'word') least = Math.max(least, atom.width)
    current = atom.kind === 'break' ? 0 : current + atom.width
    most = Math.max(most, current)
  }
  return { least, most }
}

function atomsOf(spans: Span[], size: number, faces: Measure): Atom[] {
  const atoms: Atom[] = []
  let joins = false
  for (const span of spans) {
    if (span.text === '\n') {
      atoms.push({ pieces: [], width: 0, kind: 'break' })
      joins = false
      continue
    }
    const scale = span.mono === true ? size * monoScale : size
    for (const [text] of withoutInvisible(span.text).matchAll(chunk)) {
      const space = /^[ \t\n]/.test(text)
      const pieces = piecesOf(space ? ' ' : text, span, scale, faces)
      const width = pieces.reduce((sum, piece) => sum + piece.width, 0)
      const last = atoms.at(-1)
      if (!space && joins && last?.kind === 'word') {
        last.pieces.push(...pieces)
        last.width += width
      } else if (!(space && last?.kind === 'space'))
        atoms.push({ pieces, width, kind: space ? 'space' : 'word' })
      joins = !space && !/[-–—/]$/u.test(text) && !new RegExp(`^[${wide}]$`, 'u').test(text)
    }
  }
  return atoms
}

const piecesOf = (text: string, span: Span, size: number, faces: Measure): Atom['pieces'] =>
  faces
    .runsOf(text, faceOf(span))
    .map((run) => ({ run, span, size, width: faces.measure(run.text, run.face, size) }))

/** Merges adjacent text of the same style, which gives fewer pieces and lines that can be searched and copied. */
function place(line: Line, atom: Atom): void {
  for (const { run, span, size, width } of atom.pieces) {
    const last = line.runs.at(-1)
    if (last !== undefined && last.span === span && last.face === run.face) {
      last.text += run.text
      last.width += width
    } else line.runs.push({ ...run, x: line.width, width, size, span })
    line.width += width
  }
}

/** Splits a word that is wider than the line. */
function broken(atom: Atom, width: number, faces: Measure): Atom[] {
  const parts: Atom[] = []
  let part: Atom = { pieces: [], width: 0, kind: 'word' }
  for (const { run, span, size } of atom.pieces) {
    for (const character of run.text) {
      const own = faces.measure(character, run.face, size)
      if (part.width + own > width && part.width > 0) {
        parts.push(part)
        part = { pieces: [], width: 0, kind: 'word' }
      }
      const last = part.pieces.at(-1)
      if (last?.span === span && last.run.face === run.face) {
        last.run.text += character
        last.width += own
      } else part.pieces.push({ run: { text: character, face: run.face }, span, size, width: own })
      part.width += own
    }
  }
  return [...parts, part]
}
