import { createRequire } from 'node:module'
import type { Span } from '../document.ts'

export type Face = 'regular' | 'italic' | 'bold' | 'boldItalic' | 'mono' | 'monoBold' | 'spare' | 'spareBold'

/**
 * Source Sans 3 (SIL Open Font License) for text: Latin, Greek, Cyrillic, Vietnamese. DejaVu (free licence) for code and
 * for symbols that the text font lacks.
 */
const packages: Record<Face, string> = {
  regular: '@expo-google-fonts/source-sans-3/400Regular/SourceSans3_400Regular.ttf',
  italic: '@expo-google-fonts/source-sans-3/400Regular_Italic/SourceSans3_400Regular_Italic.ttf',
  bold: '@expo-google-fonts/source-sans-3/600SemiBold/SourceSans3_600SemiBold.ttf',
  boldItalic: '@expo-google-fonts/source-sans-3/600SemiBold_Italic/SourceSans3_600SemiBold_Italic.ttf',
  mono: 'dejavu-fonts-ttf/ttf/DejaVuSansMono.ttf',
  monoBold: 'dejavu-fonts-ttf/ttf/DejaVuSansMono-Bold.ttf',
  spare: 'dejavu-fonts-ttf/ttf/DejaVuSans.ttf',
  spareBold: 'dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf',
}

/** Path of a font file. */
export const fileOf = (face: Face): string => createRequire(import.meta.url).resolve(packages[face])

export function faceOf({ bold, italic, mono }: Pick<Span, 'bold' | 'italic' | 'mono'>): Face {
  if (mono === true) return bold === true ? 'monoBold' : 'mono'
  if (bold === true) return italic === true ? 'boldItalic' : 'bold'
  return italic === true ? 'italic' : 'regular'
}

/** Fallback font for a missing glyph. */
export const spareOf = (face: Face): Face => (/bold/i.test(face) ? 'spareBold' : 'spare')

/** Replacement for a character without a glyph in any font. */
export const missingSign = '\u25A1'

/** Invisible formatting characters, which would otherwise be drawn as boxes. */
const invisible = /(?![\t\n])\p{Cc}|\p{Default_Ignorable_Code_Point}|\p{Emoji_Modifier}/gu

export const withoutInvisible = (text: string): string =>
  text.toWellFormed().normalize('NFC').replace(invisible, '')
