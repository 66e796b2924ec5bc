import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { printTable } from '../bench/support/report.ts'
import { explanationOf } from './explained.ts'

const outcome = z.enum(['passed', 'failed', 'skipped', 'xfailed'])
const kitTest = z.object({ test: z.string(), outcome, reason: z.string() })
export type KitTest = z.infer<typeof kitTest>

const status = z.enum(['PASS', 'FAIL', 'SKIPPED', 'NOT TESTED'])
const requirement = z.object({
  level: z.enum(['MUST', 'SHOULD', 'MAY']),
  status,
  transports: z.record(z.string(), status),
  errors: z.array(z.string()),
})
export type Requirement = z.infer<typeof requirement>
const report = z.object({ per_requirement: z.record(z.string(), requirement) })

/** The results of one branch of the kit. */
export interface KitRun {
  branch: string
  /** The commit of the kit. */
  commit: string
  tests: KitTest[]
  /** By ID, for the branch 1.0-dev. */
  requirements: Record<string, Requirement>
}

/** Reads the files that the kit and the plugin wrote. A file is absent if no test ran. */
export async function readRun(from: {
  branch: string
  commit: string
  results: string
  report: string
}): Promise<KitRun> {
  const { branch, commit } = from
  const lines = existsSync(from.results) ? (await readFile(from.results, 'utf8')).trim().split('\n') : []
  const byTest = new Map<string, KitTest>()
  for (const line of lines) {
    const read = kitTest.parse(JSON.parse(line))
    const before = byTest.get(read.test)
    // A test has a second line if its teardown fails.
    if (before?.outcome !== 'failed') byTest.set(read.test, read)
  }
  const requirements = existsSync(from.report)
    ? report.parse(JSON.parse(await readFile(from.report, 'utf8'))).per_requirement
    : {}
  return { branch, commit, tests: [...byTest.values()], requirements }
}

export const isMandatory = ({ test }: KitTest) => test.startsWith('tests/mandatory/')

export interface Failure {
  /** The ID of the requirement, or the test. */
  name: string
  reason: string
  /** Why it fails, if that is known and accepted. */
  explanation: string | undefined
}

/** The failures of requirements (1.0-dev) or of tests. */
export function failuresOf({ requirements, tests }: KitRun): Failure[] {
  const byRequirement = Object.entries(requirements)
    .filter(([, { status }]) => status === 'FAIL')
    .map(([name, { errors }]) => ({ name, reason: errors[0] ?? '' }))
  const byTest = tests
    .filter((test) => test.outcome === 'failed' || test.outcome === 'xfailed')
    .map(({ test, reason }) => ({ name: test, reason }))
  return [...byRequirement, ...byTest].map((failure) => ({
    ...failure,
    explanation: explanationOf(failure.name),
  }))
}

export const unexpectedFailures = (run: KitRun) =>
  failuresOf(run).filter(({ explanation }) => explanation === undefined)

/** Counts of the outcomes, by level (1.0-dev) or by folder of the tests. */
export function countsOf({ requirements, tests }: KitRun): [name: string, Record<string, number>][] {
  const counts = new Map<string, Record<string, number>>()
  const add = (name: string, result: string) => {
    const row = counts.get(name) ?? {}
    counts.set(name, row)
    row[result] = (row[result] ?? 0) + 1
  }
  for (const { level, transports } of Object.values(requirements)) {
    for (const [transport, result] of Object.entries(transports)) {
      // Parley does not offer gRPC.
      if (transport === 'grpc') continue
      const name = { jsonrpc: 'JSON-RPC', http_json: 'HTTP+JSON', agent_card: 'card' }[transport] ?? transport
      add(`${level}, ${name}`, { PASS: 'passed', FAIL: 'failed' }[result as string] ?? 'skipped')
    }
  }
  if (counts.size > 0) return [...counts].sort(([a], [b]) => a.localeCompare(b))
  for (const { test, outcome } of tests)
    add(test.split('/').slice(1, 3).join(' '), outcome === 'xfailed' ? 'failed' : outcome)
  return [...counts]
}

export function printResults(run: KitRun): void {
  console.log(`\nA2A test kit, branch ${run.branch}, commit ${run.commit}`)
  const cells = ['passed', 'failed', 'skipped']
  printTable(
    ['', ...cells],
    countsOf(run).map(([name, counts]) => [name, ...cells.map((cell) => String(counts[cell] ?? 0))]),
  )
  for (const { name, reason, explanation } of failuresOf(run))
    console.log(`${explanation === undefined ? 'FAILED' : 'failed as explained'}: ${name}: ${reason}`)
}
