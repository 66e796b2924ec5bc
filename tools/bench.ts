/**
 * `npm run bench`: runs the benchmarks of `tools/bench`, or those given (`npm run bench -- message-send`), one after the
 * other. Each prints a table and writes `bench/results/<name>.json`.
 *
 * `npm run bench -- --summary` runs the benchmarks behind the targets (`tools/bench/support/targets.ts`), prints one table of
 * them and writes it into `docs/performance.md`. With `--from-results`, nothing runs: the table is built from the results of earlier runs,
 * and figures of other commits are marked. Exits with status 1 if a target is not kept or not measured.
 */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import path from 'node:path'
import { summaryBenchmarks, writeSummary } from './bench/support/summary.ts'

const folder = path.join(import.meta.dirname, 'bench')
const all = globSync('*.ts', { cwd: folder })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => path.basename(file, '.ts'))
  .sort()
const options = process.argv.slice(2).filter((text) => text.startsWith('--'))
const names = process.argv.slice(2).filter((text) => !text.startsWith('--'))
const unknown = names.filter((name) => !all.includes(name))
const usage = 'Usage: npm run bench -- [names], or npm run bench -- --summary [--from-results]'

if (unknown.length > 0) {
  console.error(`Unknown benchmark: ${unknown.join(', ')}. Available: ${all.join(', ')}.`)
  process.exitCode = 2
} else if (options.length === 0) run(names.length > 0 ? names : all)
else if (options.join(' ') === '--summary' && names.length === 0) {
  const began = new Date()
  run(summaryBenchmarks)
  writeSummary(began)
} else if (options.sort().join(' ') === '--from-results --summary' && names.length === 0) writeSummary()
else {
  console.error(usage)
  process.exitCode = 2
}

function run(benchmarks: string[]): void {
  for (const name of benchmarks) {
    console.log(`\n── ${name}`)
    const { status } = spawnSync(process.execPath, [path.join(folder, `${name}.ts`)], { stdio: 'inherit' })
    if (status !== 0) process.exitCode = 1
  }
}
