/**
 * `npm test`: type check, lint, unit and integration tests, end-to-end tests, one after the other; all run even when
 * an earlier one fails. The last line says how many passed, failed and were skipped.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { hydraIsThere } from '../shared/testing/hydra.ts'
import { mongodbKind } from '../shared/testing/mongodb-server.ts'
import { type Count, countLine, countPlaywright, countVitest, wronglySkipped } from './count.ts'
import { installPrograms, onPath } from './install-programs.ts'
import { canBuildMongodb } from './mongodb.ts'

const root = path.dirname(import.meta.dirname)
const reports = mkdtempSync(path.join(os.tmpdir(), 'parley-test-'))

installPrograms()
// It takes minutes where it was never built: the checks that need no server go on meanwhile.
const mongodb = once(spawn(process.execPath, ['scripts/mongodb.ts'], { cwd: root, stdio: 'inherit' }), 'exit')
const checks = [
  check('Type check', ['tsc', '--noEmit']),
  check('Lint', ['oxlint', '--type-aware'], ['biome', 'check']),
]
await mongodb
const counts = [...checks, unit(), ...endToEnd()]
rmSync(reports, { recursive: true })

const skipped = counts.flatMap((count) => count.skipped)
const wrong = wronglySkipped(skipped, isInstalled)
for (const name of skipped) {
  console.log(`Skipped: ${name}${wrong.includes(name) ? ', though this machine can run it' : ''}`)
}
console.log(countLine(counts))
if (wrong.length > 0 || counts.some((count) => count.failed > 0)) process.exitCode = 1

function check(title: string, ...commands: string[][]): Count {
  const failed = commands.filter(([tool = '', ...args]) => run(title, tool, args) !== 0).length
  return { passed: failed === 0 ? 1 : 0, failed: failed === 0 ? 0 : 1, skipped: [] }
}

function unit(): Count {
  const report = path.join(reports, 'vitest.json')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  return countVitest(report, run('Unit and integration', 'vitest', ['run', ...reporters]))
}

function endToEnd(): Count[] {
  if (globSync('e2e/**/*.{spec,test}.ts', { cwd: root }).length === 0) return []
  const report = path.join(reports, 'playwright.json')
  const env = { PLAYWRIGHT_JSON_OUTPUT_FILE: report }
  return [countPlaywright(report, run('End to end', 'playwright', ['test', '--reporter=list,json'], env))]
}

/** The exit code of a tool of node_modules, its output shown as it comes. */
function run(title: string, tool: string, args: string[], env: Record<string, string> = {}): number {
  console.log(
    `\n── ${title}: ${tool} ${args.filter((arg) => !/^--(reporter|outputFile)/.test(arg)).join(' ')}`,
  )
  const bin = path.join(root, 'node_modules', '.bin', tool)
  const child = spawnSync(bin, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...env },
  })
  if (child.error !== undefined) console.error(`${tool} could not be started: ${child.error.message}`)
  return child.status ?? 1
}

/**
 * Hydra is not looked for on the path: `npm run hydra` builds one, or HYDRA_ADMIN_URL names one. A MongoDB-compatible server
 * is built where none is there; where that fails although it can be done, the suites that want it are not excused.
 */
function isInstalled(program: string): boolean {
  if (program === 'mongod') return mongodbKind() !== undefined || canBuildMongodb()
  return program === 'hydra' ? hydraIsThere() : onPath(program)
}
