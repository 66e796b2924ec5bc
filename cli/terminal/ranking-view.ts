import type { ReadCandidate, ReadNegotiation } from '@parley/wire/codecs/parley/negotiation'
import { type Io, print, say } from './io.ts'
import { oneLine, slugMax } from './printable.ts'

const subscores = [
  ['skillMatch', 'SKILL'],
  ['ioCompatibility', 'I/O'],
  ['performance', 'SPEED'],
  ['load', 'LOAD'],
  ['cost', 'COST'],
] as const
const barWidth = 8
const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** Prints the ranked candidates as a table, and the excluded agents with their rules. */
export function printRanking(
  io: Io,
  { candidates = [], excluded = [], excludedTotal }: ReadNegotiation,
): void {
  const rows = candidates.map((candidate, at) => [
    candidate.canHandle === true ? String(at + 1) : `${at + 1}!`,
    slugOf(candidate),
    numberOf(candidate.score).toFixed(4),
    ...subscores.map(([name]) => bar(numberOf(candidate.subscores?.[name]))),
    reasonOf(candidate, isOutOfOrder(candidates, at)),
  ])
  const head = ['RANK', 'AGENT', 'SCORE', ...subscores.map(([, title]) => title), 'REASONS']
  if (rows.length > 0) print(io, table([head, ...rows]))
  if (candidates.some(({ canHandle }) => canHandle !== true)) print(io, '! would not get the task\n')
  if (excluded.length > 0) {
    const lines = excluded.map(({ agent, rule }) => [oneLine(agent ?? '', slugMax), oneLine(rule ?? '', 120)])
    print(io, `\n${table([['EXCLUDED', 'RULE'], ...lines])}`)
    const more = numberOf(excludedTotal) - excluded.length
    if (more > 0) print(io, `and ${more} more\n`)
  }
}

/** Prints on one line which agent won the negotiation. */
export function sayWinner(io: Io, record: ReadNegotiation): void {
  const why = (record.reasons ?? []).slice(0, 2).map((reason) => oneLine(reason, 120))
  say(io, `→ ${slugOf(record)} (score ${numberOf(record.score).toFixed(2)}): ${why.join('; ')}`)
}

/** Prints why no agent was chosen. */
export function sayRefused(io: Io, { candidates = [], excluded = [] }: ReadNegotiation): void {
  for (const candidate of candidates)
    say(io, `  ${slugOf(candidate)} (score ${numberOf(candidate.score).toFixed(2)}): ${reasonOf(candidate)}`)
  for (const { agent, rule } of excluded.slice(0, 10))
    say(io, `  ${oneLine(agent ?? '', slugMax)} excluded: ${oneLine(rule ?? '', 120)}`)
}

const slugOf = ({ agent }: ReadCandidate) => oneLine(agent?.slug ?? '?', slugMax)

/** Whether the rank differs from that of the score. The last reasons of these agents state the cause. */
function isOutOfOrder(candidates: readonly ReadCandidate[], at: number): boolean {
  const [before = 1, score = 0, after = 0] = [at - 1, at, at + 1].map((i) => candidates[i]?.score)
  return numberOf(score) > numberOf(before) || numberOf(score) < numberOf(after)
}

function reasonOf({ canHandle, reasons = [], rejectionReason }: ReadCandidate, isLastFirst = false): string {
  if (canHandle !== true && rejectionReason !== undefined) return oneLine(rejectionReason, 100)
  const all = isLastFirst ? [...reasons.slice(-1), ...reasons.slice(0, -1)] : reasons
  return oneLine(all.join('; '), 100)
}

export function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}

/** Renders a fraction from 0 to 1 as a bar. */
function bar(share: number): string {
  const parts = Math.round(Math.min(1, Math.max(0, share)) * barWidth * 8)
  return ('█'.repeat(Math.floor(parts / 8)) + (eighths[parts % 8] ?? '')).padEnd(barWidth, '·')
}

export function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return `${rows.map((row) => line(row).trimEnd()).join('\n')}\n`
}
