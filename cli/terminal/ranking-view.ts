import { type Io, print, say } from './io.ts'
import { oneLine } from './printable.ts'

/** A candidate of a negotiation, as far as it is shown; every field is from outside. */
export interface ShownCandidate {
  agent?: { slug?: string } | null
  can_handle?: boolean
  score?: number
  subscores?: Record<string, number>
  reasons?: string[]
  rejection_reason?: string
}

export interface ShownNegotiation extends ShownCandidate {
  candidates?: ShownCandidate[]
  excluded?: { agent?: string; rule?: string }[]
  excluded_total?: number
  negotiation_id?: string
}

const subscores = [
  ['skill_match', 'SKILL'],
  ['io_compatibility', 'I/O'],
  ['performance', 'SPEED'],
  ['load', 'LOAD'],
  ['cost', 'COST'],
] as const
const barWidth = 8
const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** The ranked candidates in a table, and who was excluded by which rule. */
export function printRanking(
  io: Io,
  { candidates = [], excluded = [], excluded_total }: ShownNegotiation,
): void {
  const rows = candidates.map((candidate, at) => [
    candidate.can_handle === true ? String(at + 1) : `${at + 1}!`,
    slugOf(candidate),
    numberOf(candidate.score).toFixed(4),
    ...subscores.map(([name]) => bar(numberOf(candidate.subscores?.[name]))),
    reasonOf(candidate),
  ])
  const head = ['RANK', 'AGENT', 'SCORE', ...subscores.map(([, title]) => title), 'REASONS']
  if (rows.length > 0) print(io, table([head, ...rows]))
  if (candidates.some(({ can_handle }) => can_handle !== true)) print(io, '! would not get the task\n')
  if (excluded.length > 0) {
    const lines = excluded.map(({ agent, rule }) => [oneLine(agent ?? '', 40), oneLine(rule ?? '', 120)])
    print(io, `\n${table([['EXCLUDED', 'RULE'], ...lines])}`)
    const more = numberOf(excluded_total) - excluded.length
    if (more > 0) print(io, `and ${more} more\n`)
  }
}

/** One line of a message that found its agent by negotiation. */
export function sayWinner(io: Io, record: ShownNegotiation): void {
  const why = (record.reasons ?? []).slice(0, 2).map((reason) => oneLine(reason, 120))
  say(io, `→ ${slugOf(record)} (score ${numberOf(record.score).toFixed(2)}): ${why.join('; ')}`)
}

/** Why nobody took it. */
export function sayRefused(io: Io, { candidates = [], excluded = [] }: ShownNegotiation): void {
  for (const candidate of candidates)
    say(io, `  ${slugOf(candidate)} (score ${numberOf(candidate.score).toFixed(2)}): ${reasonOf(candidate)}`)
  for (const { agent, rule } of excluded.slice(0, 10))
    say(io, `  ${oneLine(agent ?? '', 40)} excluded: ${oneLine(rule ?? '', 120)}`)
}

const slugOf = ({ agent }: ShownCandidate) => oneLine(agent?.slug ?? '?', 40)

function reasonOf({ can_handle, reasons = [], rejection_reason }: ShownCandidate): string {
  const all = can_handle === true || rejection_reason === undefined ? reasons : [rejection_reason]
  return oneLine(all.join('; '), 100)
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}

/** 0..1 in blocks. */
function bar(share: number): string {
  const parts = Math.round(Math.min(1, Math.max(0, share)) * barWidth * 8)
  return ('█'.repeat(Math.floor(parts / 8)) + (eighths[parts % 8] ?? '')).padEnd(barWidth, '·')
}

function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return `${rows.map((row) => line(row).trimEnd()).join('\n')}\n`
}
