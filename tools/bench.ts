/**
 * `npm run bench`: every file of `bench/`, or those named (`npm run bench -- message-send`), one after the other. Each
 * prints a table and writes `bench/results/<name>.json`; what a bench needs beside itself stands in a folder of `bench/`.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync } from 'node:fs'
import path from 'node:path'

const folder = path.join(import.meta.dirname, 'bench')
const all = globSync('*.ts', { cwd: folder })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => path.basename(file, '.ts'))
  .sort()
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !all.includes(name))

if (unknown.length > 0) {
  console.error(`No such bench: ${unknown.join(', ')}. There are: ${all.join(', ')}.`)
  process.exitCode = 2
} else {
  mkdirSync(path.join(folder, 'results'), { recursive: true })
  for (const name of wanted.length > 0 ? wanted : all) {
    console.log(`\n── ${name}`)
    const { status } = spawnSync(process.execPath, [path.join(folder, `${name}.ts`)], { stdio: 'inherit' })
    if (status !== 0) process.exitCode = 1
  }
}
