const words = new Set([
  '',
  '-',
  '--',
  '?',
  'na',
  'n/a',
  '#n/a',
  'nan',
  'null',
  'nil',
  'none',
  'missing',
  'unknown',
  '.',
])

export const isMissing = (cell: string) => words.has(cell.toLowerCase())
