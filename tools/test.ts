/**
 * `npm test`: runs unit and integration tests together with type checks and lint, then end-to-end tests. A failure does
 * not stop the rest. The last line has the numbers of passed, failed and skipped tests.
 */
import { type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { inspectorIsThere } from './clients/mcp-inspector.ts'
import { mcpPythonIsThere, openaiPythonIsThere } from './clients/python-clients.ts'
import { type Count, countLine, countPlaywright, countVitest, wronglySkipped } from './count.ts'
import { installPrograms, onPath } from './install-programs.ts'
import { a2aSdkIsThere } from './interop/python.ts'
import { canBuildMongodb } from './mongodb.ts'
import { schemathesisIsThere } from './schemathesis/run.ts'
import { binduIsThere } from './testing/bindu.ts'
import { hydraIsThere } from './testing/hydra.ts'
import { mongodbKind } from './testing/mongodb-server.ts'
import { trackedFiles } from './tracked-files.ts'

const root = path.dirname(import.meta.dirname)
const argumentsShown = 8
const reports = mkdtempSync(path.join(os.tmpdir(), 'parley-test-'))

installPrograms()
// The first build takes minutes, so checks that need no server run in parallel.
const mongodb = once(spawn(process.execPath, ['tools/mongodb.ts'], { cwd: root, stdio: 'inherit' }), 'exit')
// Installed once for all test runs.
const bindu = once(spawn(process.execPath, ['tools/bindu.ts'], { cwd: root, stdio: 'inherit' }), 'exit')
const a2aSdk = once(spawn(process.execPath, ['tools/a2a-sdk.ts'], { cwd: root, stdio: 'inherit' }), 'exit')
const apiClients = once(
  spawn(process.execPath, ['tools/api-clients.ts'], { cwd: root, stdio: 'inherit' }),
  'exit',
)
const schemathesis = once(
  spawn(process.execPath, ['tools/schemathesis.ts'], { cwd: root, stdio: 'inherit' }),
  'exit',
)
const checks = [check('Type check', ['tsc', '-b']), lint()]
await Promise.all([mongodb, schemathesis, bindu, a2aSdk, apiClients])
const counts = [await unit(), ...(await Promise.all(checks)), ...(await endToEnd())]
rmSync(reports, { recursive: true })

const skipped = counts.flatMap((count) => count.skipped)
const wrong = wronglySkipped(skipped, isInstalled)
for (const name of skipped) {
  console.log(`Skipped: ${name}${wrong.includes(name) ? ', though this machine can run it' : ''}`)
}
for (const failure of counts.flatMap(({ failures = [] }) => failures))
  console.log(`Failed: ${failure.replaceAll(`${root}/`, '')}`)
console.log(countLine(counts))
if (wrong.length > 0 || counts.some((count) => count.failed > 0)) process.exitCode = 1

/** Checks only tracked files, so that files written by agents during a trial do not make it fail. */
function lint(): Promise<Count> {
  const tracked = trackedFiles(root) ?? []
  const scripts = tracked.filter((name) => /\.[cm]?[jt]s$/.test(name))
  const known = ['--no-errors-on-unmatched', '--files-ignore-unknown=true']
  return check('Lint', ['oxlint', '--type-aware', ...scripts], ['biome', 'check', ...known, ...tracked])
}

/** Prints the output at the end, so that it does not mix with that of the tests. */
async function check(title: string, ...commands: string[][]): Promise<Count> {
  let failed = 0
  for (const [tool = '', ...args] of commands) {
    const { code, output } = await run(tool, args, 'pipe')
    console.log(`${heading(title, tool, args)}\n${output}`)
    if (code !== 0) failed += 1
  }
  return failed === 0
    ? { passed: 1, failed: 0, skipped: [] }
    : { passed: 0, failed: 1, failures: [`${title}: its output is above`], skipped: [] }
}

async function unit(): Promise<Count> {
  const report = path.join(reports, 'vitest.json')
  const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  console.log(heading('Unit and integration', 'vitest', args))
  return countVitest(report, (await run('vitest', args, 'inherit')).code)
}

async function endToEnd(): Promise<Count[]> {
  if (globSync('e2e/**/*.{spec,test}.ts', { cwd: root }).length === 0) return []
  const report = path.join(reports, 'playwright.json')
  const args = ['test', '--reporter=list,json']
  console.log(heading('End to end', 'playwright', args))
  const { code } = await run('playwright', args, 'inherit', { PLAYWRIGHT_JSON_OUTPUT_FILE: report })
  return [countPlaywright(report, code)]
}

function heading(title: string, tool: string, args: string[]): string {
  const shown = args.filter((arg) => !/^--(reporter|outputFile)/.test(arg))
  const more = shown.length > argumentsShown ? ` … (${shown.length} arguments)` : ''
  return `\n── ${title}: ${tool} ${shown.slice(0, argumentsShown).join(' ')}${more}`
}

/** Runs a tool from node_modules. */
async function run(
  tool: string,
  args: string[],
  shown: 'inherit' | 'pipe',
  env: Record<string, string> = {},
) {
  const bin = path.join(root, 'node_modules', '.bin', tool)
  const stdio = ['ignore', shown, shown] satisfies StdioOptions
  const child = spawn(bin, args, { cwd: root, stdio, env: { ...process.env, ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += String(chunk)))
  const failed = ({ message }: Error) => {
    console.error(`${tool} could not be started: ${message}`)
    return [1]
  }
  const [code] = (await once(child, 'close').catch(failed)) as [number | null]
  return { code: code ?? 1, output }
}

/**
 * Hydra is not looked up on the path: `npm run hydra` builds it, or HYDRA_ADMIN_URL is its address. A MongoDB-compatible
 * server is built if none is available. If the build is possible but fails, its suites count as wrongly skipped.
 */
function isInstalled(program: string): boolean {
  if (program === 'mongod') return mongodbKind() !== undefined || canBuildMongodb()
  if (program === 'bindu') return binduIsThere()
  if (program === 'a2a-sdk') return a2aSdkIsThere()
  if (program === 'schemathesis') return schemathesisIsThere()
  if (program === 'mcp-inspector') return inspectorIsThere()
  if (program === 'openai-python') return openaiPythonIsThere()
  if (program === 'mcp-python') return mcpPythonIsThere()
  return program === 'hydra' ? hydraIsThere() : onPath(program)
}
