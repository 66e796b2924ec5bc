/**
 * `npm run bench`: runs the benchmarks of `tools/bench`, or those given (`npm run bench -- message-send`), one after the
 * other. Each prints a table and writes `bench/results/<name>.json`.
 */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import path from 'node:path'

const folder = path.join(import.meta.dirname, 'bench')
const all = globSync('*.ts', { cwd: folder })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => path.basename(file, '.ts'))
  .sort()
const names = process.argv.slice(2)
const unknown = names.filter((name) => !all.includes(name))

if (unknown.length > 0) {
  console.error(`Unknown benchmark: ${unknown.join(', ')}. Available: ${all.join(', ')}.`)
  process.exitCode = 2
} else {
  for (const name of names.length > 0 ? names : all) {
    console.log(`\n── ${name}`)
    const { status } = spawnSync(process.execPath, [path.join(folder, `${name}.ts`)], { stdio: 'inherit' })
    if (status !== 0) process.exitCode = 1
  }
}
