import type { Column } from './table/columns.ts'

export interface Mention {
  column: Column
  /** Position in the text. */
  at: number
}

/** Words of a column name that do not identify it. */
const empty = new Set(
  'a an and at by count date day each for from id in is name no number of on or per sum the time to total type value year month week avg average mean max min'.split(
    ' ',
  ),
)

/**
 * Finds the columns named in a text, in order, and the text without them. Matches full names, longest first, then single
 * words that occur in one column only ("sales" for "Total sales (USD)").
 */
export function mentionsOf(text: string, columns: Column[]): { mentions: Mention[]; rest: string } {
  const mentions: Mention[] = []
  let rest = text
  const take = (column: Column, pattern: RegExp) => {
    const match = pattern.exec(rest)
    if (!match) return
    const at = match.index
    mentions.push({ column, at })
    rest = rest.slice(0, at) + ' '.repeat(match[0].length) + rest.slice(at + match[0].length)
  }
  for (const column of columns.toSorted((a, b) => b.name.length - a.name.length)) {
    const words = wordsOf(column.name)
    if (words.length > 0) take(column, wholePattern(words))
  }
  for (const [word, owner] of wordsOfOne(columns)) {
    if (!mentions.some(({ column }) => column === owner)) take(owner, wholePattern([word]))
  }
  return { mentions: mentions.sort((a, b) => a.at - b.at), rest }
}

export function wordsOf(name: string): string[] {
  return (
    name
      .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
      .toLowerCase()
      .match(/[\p{L}\d]+/gu) ?? []
  )
}

/** Pattern for the words in sequence, in singular or plural, with any separators. */
function wholePattern(words: string[]): RegExp {
  const parts = words.map(anyNumber)
  return new RegExp(`(?<![\\p{L}\\d])${parts.join('[\\W_]*')}(?![\\p{L}\\d])`, 'iu')
}

/** Pattern for a word in singular or plural. */
function anyNumber(word: string): string {
  if (word.length < 4 || /\d/.test(word)) return `${escape(word)}s?`
  const ending = /(?:ies|y)$/.exec(word)?.[0]
  if (ending) return `${escape(word.slice(0, -ending.length))}(?:ies|y|ys)`
  return `${escape(word.replace(/(?:(?<=[sxz]|ch|sh)es|(?<![su])s)$/, ''))}(?:s|es)?`
}

const escape = (word: string) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

function wordsOfOne(columns: Column[]): [string, Column][] {
  const owners = new Map<string, Column[]>()
  for (const column of columns) {
    for (const word of new Set(wordsOf(column.name))) {
      if (word.length >= 3 && !empty.has(word)) owners.set(word, [...(owners.get(word) ?? []), column])
    }
  }
  return [...owners].flatMap(([word, [owner, other]]): [string, Column][] =>
    owner && !other ? [[word, owner]] : [],
  )
}
