import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { parse } from 'yaml'
import { z } from 'zod'

export const revisions = ['2026-07-28', '2025-11-25'] as const
export type Revision = (typeof revisions)[number]

const check = z.object({
  id: z.string(),
  status: z.enum(['SUCCESS', 'FAILURE', 'WARNING', 'SKIPPED', 'INFO']),
  errorMessage: z.string().optional(),
})
export type Check = z.infer<typeof check>

/** The results of one scenario. */
export interface ScenarioRun {
  scenario: string
  /** Whether the revision requires it; extensions and drafts are run and reported only. */
  isRequired: boolean
  checks: Check[]
}

const folder = path.join(
  import.meta.dirname,
  '..',
  '..',
  'node_modules',
  '@modelcontextprotocol',
  'conformance',
)

export async function suiteVersion(): Promise<string> {
  const text = await readFile(path.join(folder, 'package.json'), 'utf8')
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version
}

const requirements = z.object({
  server: z.array(z.string()),
  not_scored: z.array(z.object({ scenario: z.string(), leg: z.string() })),
})

/** Runs the scenarios of a revision against the MCP server at this address, which must not require a token. */
export async function runServerSuite(url: string, revision: Revision): Promise<ScenarioRun[]> {
  const text = await readFile(path.join(folder, 'requirements', `${revision}.yaml`), 'utf8')
  const { server, not_scored } = requirements.parse(parse(text))
  const others = not_scored.filter(({ leg }) => leg === 'server').map(({ scenario }) => scenario)
  await using results = await mkdtempDisposable(path.join(os.tmpdir(), 'parley-mcp-'))
  await runConformance(['server', '--url', url, '--requirements', revision, '--output-dir', results.path])
  const runs = []
  for (const scenario of [...server, ...others]) {
    const checks = await checksOf(results.path, `server-${scenario}`)
    runs.push({ scenario, isRequired: server.includes(scenario), checks })
  }
  return runs
}

/** Runs one scenario of a revision. */
export async function runScenario(url: string, revision: Revision, scenario: string): Promise<Check[]> {
  await using results = await mkdtempDisposable(path.join(os.tmpdir(), 'parley-mcp-'))
  const selection = ['--scenario', scenario, '--spec-version', revision, '--force']
  await runConformance(['server', '--url', url, ...selection, '--output-dir', results.path])
  return await checksOf(results.path, `server-${scenario}`)
}

/**
 * The checks of a scenario. A scenario that failed without a result has one failed check.
 * @param prefix the name of the folder with the results, without its time
 */
export async function checksOf(results: string, prefix: string): Promise<Check[]> {
  const names = await readdir(results)
  const name = names.find((one) => one.startsWith(prefix) && /^-\d{4}-/.test(one.slice(prefix.length)))
  if (name === undefined)
    return [{ id: 'run', status: 'FAILURE', errorMessage: 'the scenario has no result' }]
  const text = await readFile(path.join(results, name, 'checks.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return [{ id: 'run', status: 'FAILURE', errorMessage: 'the scenario was aborted' }]
  return z.array(check).parse(JSON.parse(text))
}

/** Runs the suite. @param onLine called for each line that it prints */
export async function runConformance(
  args: string[],
  onLine: (line: string) => void = () => {},
): Promise<void> {
  const program = path.join(folder, 'dist', 'index.js')
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH, HOME },
  })
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) onLine(line)
  await exited
}
