/** The appearance of a document. All lengths are in PDF points (1/72 inch). */
export const pageSizes = { a4: [595.28, 841.89], letter: [612, 792] } as const
export type PageSize = keyof typeof pageSizes

export const margins = { top: 72, right: 76, bottom: 80, left: 76 }
export const footerBaseline = 44

export const colors = {
  ink: '#1c2330',
  soft: '#5d6878',
  link: '#1a5ba6',
  line: '#d3dae3',
  panel: '#f3f5f8',
  accent: '#2f6fb5',
} as const
export type Color = keyof typeof colors

/** Font size, line height, space before and after. */
export interface TextStyle {
  size: number
  leading: number
  before: number
  after: number
}

export const body: TextStyle = { size: 10.5, leading: 15.6, before: 0, after: 8 }
export const cell: TextStyle = { size: 9.25, leading: 13, before: 0, after: 0 }
export const smallCell: TextStyle = { size: 7.5, leading: 10.5, before: 0, after: 0 }
export const code: TextStyle = { size: 8.4, leading: 12.4, before: 0, after: 0 }
export const caption: TextStyle = { size: 8.75, leading: 12, before: 0, after: 0 }
export const title: TextStyle = { size: 25, leading: 30, before: 0, after: 6 }
export const subtitle: TextStyle = { size: 12.5, leading: 17, before: 0, after: 4 }
export const footer: TextStyle = { size: 8.25, leading: 10, before: 0, after: 0 }

export const headings: readonly TextStyle[] = [
  { size: 21, leading: 26, before: 24, after: 9 },
  { size: 15.5, leading: 20, before: 20, after: 7 },
  { size: 12.5, leading: 17, before: 15, after: 5 },
  { size: 10.75, leading: 15.6, before: 12, after: 4 },
  { size: 10.5, leading: 15.6, before: 10, after: 3 },
  { size: 10.5, leading: 15.6, before: 10, after: 3 },
]

/** Scale of the monospaced font, which appears larger than the text font. */
export const monoScale = 0.86
export const listIndent = 18
export const quoteIndent = 16
/** Minimum width of a column, which limits the indentation of nested lists and quotes. */
export const narrowest = 160
