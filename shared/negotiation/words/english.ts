import { readFileSync } from 'node:fs'

/** A line of `english.txt`: a stem, its frequency rank, and its related stems. */
interface Entry {
  line: number
  rank: number
  rest: string
  related?: readonly (readonly [stem: string, share: number])[]
}

const rankMax = 60_000
const none: readonly (readonly [string, number])[] = []
let table: Map<string, Entry> | undefined
const stems: string[] = []

function entries(): Map<string, Entry> {
  table ??= read()
  return table
}

function read(): Map<string, Entry> {
  const found = new Map<string, Entry>()
  for (const line of readFileSync(new URL('./english.txt', import.meta.url), 'utf8').split('\n')) {
    const first = line.indexOf(' ')
    if (first < 0) continue
    const second = line.indexOf(' ', first + 1)
    const stem = line.slice(0, first)
    const rank = Number(second < 0 ? line.slice(first + 1) : line.slice(first + 1, second))
    found.set(stem, { line: stems.length, rank, rest: second < 0 ? '' : line.slice(second + 1) })
    stems.push(stem)
  }
  return found
}

/** Significance of a word, based on its rarity in English, from 0.05 to 1. Unknown words have 1. */
export function backgroundRarity(stem: string): number {
  const rank = entries().get(stem)?.rank ?? rankMax
  return Math.min(1, Math.max(0.05, Math.log(rank + 1) / Math.log(rankMax)))
}

export const isEnglish = (stem: string): boolean => entries().has(stem)

/** The line number of a stem, counted from 0, which is the index of its vector in `english.vec`. */
export const placeOf = (stem: string): number | undefined => entries().get(stem)?.line

/** Related stems with their similarities, which are below 1, the most similar first. */
export function relatedTo(stem: string): readonly (readonly [stem: string, share: number])[] {
  const entry = entries().get(stem)
  if (entry === undefined) return none
  entry.related ??= parsed(entry.rest)
  return entry.related
}

function parsed(rest: string): readonly (readonly [string, number])[] {
  if (rest === '') return none
  const fields = rest.split(' ')
  const related: [string, number][] = []
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const stem = stems[Number.parseInt(fields[at] ?? '', 36)]
    if (stem !== undefined) related.push([stem, Number(fields[at + 1]) / 100])
  }
  return related
}
