/** The summary of all targets: one table, printed and written into `docs/performance.md`. */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { machine } from './machine.ts'
import { keeps, printTable, resultsFolder } from './report.ts'
import { type Target, type TargetName, targets } from './targets.ts'

/** The part of a file of results that the summary needs. */
interface Result {
  at: string
  commit: string
  quick: boolean
  machine: ReturnType<typeof machine>
  targets: Partial<Record<TargetName, number>>
}

/** A file of results, or undefined if there is none or if it is older than this time. */
function resultOf(benchmark: string, since: Date): Result | undefined {
  try {
    const result = JSON.parse(readFileSync(path.join(resultsFolder, `${benchmark}.json`), 'utf8')) as Result
    return new Date(result.at) >= since && result.commit !== undefined ? result : undefined
  } catch {
    return undefined
  }
}

/** The benchmarks behind the targets, in the order of the table. */
export const summaryBenchmarks = [...new Set(Object.values(targets).map(({ benchmark }) => benchmark))]

const head = ['what', 'measured', 'target', 'aim', 'kept?']

/** @param since older results are ignored */
export function writeSummary(since = new Date(0)): void {
  const results = new Map(
    summaryBenchmarks.flatMap((name) => {
      const result = resultOf(name, since)
      return result === undefined ? [] : [[name, result] as const]
    }),
  )
  const newest = [...results.values()].sort((a, b) => (a.at < b.at ? 1 : -1))[0]
  if (newest === undefined) {
    console.error('There are no results. Run npm run bench -- --summary.')
    process.exitCode = 2
    return
  }
  const rows = Object.entries(targets).map(([name, target]) =>
    rowOf(name as TargetName, target, results.get(target.benchmark), newest.commit),
  )
  const origin = originOf(newest)
  console.log(`\n${origin}\n`)
  printTable(head, rows)
  writeIntoPage(origin, rows)
  if (rows.some((row) => row.at(-1) !== 'yes')) process.exitCode = 1
}

function rowOf(name: TargetName, target: Target, result: Result | undefined, shownCommit: string): string[] {
  const { least, most, aim, unit = '' } = target
  const bound = least === undefined ? `≤ ${most}` : `≥ ${least}`
  const value = result?.targets[name]
  const marks = [
    result?.commit !== shownCommit && result !== undefined && `commit ${result.commit}, ${dayOf(result)}`,
    result?.quick === true && 'quick run',
  ].filter((mark) => mark !== false)
  const measured =
    value === undefined
      ? 'not measured'
      : `${rounded(value)}${unit}${marks.length === 0 ? '' : ` (${marks.join('; ')})`}`
  const kept = value === undefined ? '–' : keeps(target, value) ? 'yes' : 'no'
  return [name, measured, `${bound}${unit}`, aim === undefined ? '–' : `${aim}${unit}`, kept]
}

const rounded = (value: number) => (value < 100 ? value.toFixed(2) : String(Math.round(value)))
const dayOf = ({ at }: Result) => at.slice(0, 10)

function originOf(result: Result): string {
  const { cpu, cores, memoryGb, node, system } = result.machine
  const changed = result.commit.endsWith('+') ? ' with changes that are not committed' : ''
  return (
    `Measured on ${dayOf(result)} at commit ${result.commit.replace('+', '')}${changed}: ` +
    `${cpu}, ${cores} cores, ${memoryGb} GB of memory, Node ${node}, ${system}.`
  )
}

const [begin, end] = ['<!-- summary begins: npm run bench -- --summary -->', '<!-- summary ends -->']

/** Replaces the text between the markers. */
function writeIntoPage(origin: string, rows: string[][]): void {
  const file = path.join(import.meta.dirname, '../../../docs/performance.md')
  const page = readFileSync(file, 'utf8')
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`docs/performance.md lacks the line ${begin} or ${end}`)
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  const table = [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
  writeFileSync(file, `${page.slice(0, from)}${begin}\n${origin}\n\n${table}\n${page.slice(to)}`)
}
