import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { machine } from './machine.ts'
import { type Figures, quick } from './measure.ts'
import { type Target, type TargetName, targets } from './targets.ts'

/** The folder of the results. */
export const resultsFolder = path.join(import.meta.dirname, '../../../bench/results')

/** Prints a table with padded columns. All but the first are right-aligned. */
export function printTable(head: string[], rows: string[][]): void {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (cells: string[]) =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
  console.log([line(head), ...rows.map(line)].join('\n'))
}

export const percent = (share: number) => `${Math.round(share * 100)} %`

export function printFigures(named: Record<string, Figures>): void {
  const head = [
    'server',
    'requests/s',
    'CPU µs/request',
    'with generator',
    'p50 ms',
    'p99 ms',
    'generator',
    'idle',
    'other programs',
  ]
  const rows = Object.entries(named).map(([name, figures]) => [
    name,
    String(Math.round(figures.requestsPerSecond)),
    figures.cpuMicrosPerRequest.toFixed(1),
    figures.totalCpuMicrosPerRequest.toFixed(1),
    figures.p50Ms.toFixed(2),
    figures.p99Ms.toFixed(2),
    percent(figures.generatorUse),
    percent(figures.loadIdle),
    percent(figures.othersOnServerCore),
  ])
  printTable(head, rows)
}

/** Prints each ratio to the reference. Other programs affect requests per second more than CPU time. */
export function compare(found: Record<string, Figures>, reference: string): void {
  const other = found[reference]
  if (other === undefined) throw new Error(`no figures for ${reference}`)
  const ratios: [title: string, of: (figures: Figures) => number][] = [
    ['requests/s', (one) => one.requestsPerSecond],
    ['CPU', (one) => one.cpuMicrosPerRequest],
    ['CPU with generator', (one) => one.totalCpuMicrosPerRequest],
    ['p50', (one) => one.p50Ms],
    ['p99', (one) => one.p99Ms],
  ]
  const rows = Object.entries(found).filter(([, own]) => own !== other)
  printTable(
    [`÷ ${reference}`, ...ratios.map(([title]) => title)],
    rows.map(([name, own]) => [name, ...ratios.map(([, of]) => (of(own) / of(other)).toFixed(2))]),
  )
}

/** Checks a target: prints the result and sets the exit code. */
export function expectAtLeast(what: string, value: number, least: number): void {
  verdict(`${what}: ${value.toFixed(2)} (at least ${least})`, value >= least)
}

export function expectAtMost(what: string, value: number, most: number, unit = ''): void {
  verdict(`${what}: ${value.toFixed(2)}${unit} (at most ${most}${unit})`, value <= most)
}

/** Values of targets that this process has measured. */
const measured: Partial<Record<TargetName, number>> = {}

/** Checks a figure of the summary, which `saveResults` stores. */
export function checkTarget(name: TargetName, value: number): void {
  const { least, most, unit = '' }: Target = targets[name]
  measured[name] = value
  const bound = least === undefined ? `at most ${most}` : `at least ${least}`
  verdict(`${name}: ${value.toFixed(2)}${unit} (${bound}${unit})`, keeps(targets[name], value))
}

export function keeps({ least, most }: Target, value: number): boolean {
  return least === undefined ? value <= (most ?? Number.NaN) : value >= least
}

function verdict(text: string, kept: boolean): void {
  console.log(`${kept ? 'kept    ' : 'NOT KEPT'}  ${text}`)
  if (!kept) process.exitCode = 1
}

/** Writes `bench/results/<name>.json`: the figures, those of targets, the machine and the commit. */
export async function saveResults(name: string, results: object): Promise<void> {
  await mkdir(resultsFolder, { recursive: true })
  const origin = { name, at: new Date().toISOString(), commit: commit(), quick, machine: machine() }
  const whole = { ...origin, targets: measured, ...results }
  await writeFile(path.join(resultsFolder, `${name}.json`), `${JSON.stringify(whole, null, 2)}\n`)
}

/** The commit of the checkout, with a plus sign if tracked files differ from it. */
export function commit(): string {
  const git = (...args: string[]) =>
    spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).stdout.trim()
  const changed = git('status', '--porcelain', '--untracked-files=no') !== ''
  return `${git('rev-parse', '--short=8', 'HEAD')}${changed ? '+' : ''}`
}
