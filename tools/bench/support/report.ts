import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { machine } from './machine.ts'
import type { Figures } from './measure.ts'

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
    'p50 ms',
    'p99 ms',
    'generator',
    'load core idle',
    'other programs',
  ]
  const rows = Object.entries(named).map(([name, figures]) => [
    name,
    String(Math.round(figures.requestsPerSecond)),
    figures.cpuMicrosPerRequest.toFixed(1),
    figures.p50Ms.toFixed(2),
    figures.p99Ms.toFixed(2),
    percent(figures.generatorUse),
    percent(figures.loadIdle),
    percent(figures.othersOnServerCore),
  ])
  printTable(head, rows)
}

/** Compares requests per second, and per CPU time, which other programs do not affect, with those of the reference. */
export function compare(found: Record<string, Figures>, withWhom: string, least: number): void {
  const other = found[withWhom]
  if (other === undefined) throw new Error(`no figures for ${withWhom}`)
  for (const [name, own] of Object.entries(found)) {
    if (own === other) continue
    expectAtLeast(`${name} ÷ ${withWhom}, requests/s`, own.requestsPerSecond / other.requestsPerSecond, least)
    const byCpu = other.cpuMicrosPerRequest / own.cpuMicrosPerRequest
    console.log(`          by CPU time: ${byCpu.toFixed(2)}`)
  }
}

/** Checks a target: prints the result and sets the exit code. */
export function expectAtLeast(what: string, value: number, least: number): void {
  verdict(`${what}: ${value.toFixed(2)} (at least ${least})`, value >= least)
}

export function expectAtMost(what: string, value: number, most: number, unit = ''): void {
  verdict(`${what}: ${value.toFixed(2)}${unit} (at most ${most}${unit})`, value <= most)
}

function verdict(text: string, kept: boolean): void {
  console.log(`${kept ? 'kept    ' : 'NOT KEPT'}  ${text}`)
  if (!kept) process.exitCode = 1
}

/** Writes `bench/results/<name>.json`: the figures and the machine. */
export async function saveResults(name: string, results: object): Promise<void> {
  const folder = path.join(import.meta.dirname, '../../../bench/results')
  await mkdir(folder, { recursive: true })
  const whole = { name, at: new Date().toISOString(), machine: machine(), ...results }
  await writeFile(path.join(folder, `${name}.json`), `${JSON.stringify(whole, null, 2)}\n`)
}
