import { printTable } from '../bench/support/report.ts'
import { plain, tableOf } from '../tck/conformance.ts'
import { explained } from './explained.ts'
import type { Revision, ScenarioRun } from './suite.ts'

export interface Failure {
  /** `scenario:check` */
  name: string
  message: string
  /** Why it does not apply or fails, if that is known and accepted. */
  explanation: string | undefined
}

export function failuresOf(revision: Revision | undefined, runs: readonly ScenarioRun[]): Failure[] {
  const reasons = revision === undefined ? {} : explained[revision]
  return runs.flatMap(({ scenario, checks }) =>
    checks
      .filter(({ status }) => status === 'FAILURE')
      .map(({ id, errorMessage = '' }) => {
        const name = `${scenario}:${id}`
        return { name, message: errorMessage, explanation: reasons[name] ?? reasons[scenario] }
      }),
  )
}

/** Failures without an accepted explanation, and explanations of what does not fail. */
export function unexpectedOf(revision: Revision | undefined, runs: readonly ScenarioRun[]): string[] {
  const failures = failuresOf(revision, runs)
  const unexplained = failures
    .filter(({ explanation }) => explanation === undefined)
    .map(({ name, message }) => `${name}: ${message}`)
  const failed = new Set(failures.flatMap(({ name }) => [name, name.replace(/:.*$/, '')]))
  const stale = Object.keys(revision === undefined ? {} : explained[revision])
    .filter((name) => !failed.has(name))
    .map((name) => `${name}: passes, although its failure is explained`)
  return [...unexplained, ...stale]
}

const countOf = ({ checks }: ScenarioRun, ...statuses: string[]) =>
  checks.filter(({ status }) => statuses.includes(status)).length

/** One row per scenario: its name, whether it is required, the numbers of its checks, and its result. */
function rowsOf(revision: Revision | undefined, runs: readonly ScenarioRun[]): string[][] {
  return runs.map((run) => {
    const failures = failuresOf(revision, [run])
    const reasons = new Set(failures.map(({ explanation, message }) => explanation ?? `FAILED: ${message}`))
    const result =
      failures.length === 0 ? (countOf(run, 'SUCCESS') > 0 ? 'pass' : 'skipped') : [...reasons].join(' ')
    const counts = [countOf(run, 'SUCCESS'), failures.length, countOf(run, 'WARNING', 'SKIPPED')]
    return [run.scenario, run.isRequired ? 'required' : 'not scored', ...counts.map(String), plain(result)]
  })
}

const head = ['Scenario', '', 'passed', 'failed', 'skipped', 'Result']

export function printRuns(title: string, revision: Revision | undefined, runs: readonly ScenarioRun[]): void {
  console.log(`\n${title}: ${summaryOf(runs)}`)
  printTable(head, rowsOf(revision, runs))
}

export function sectionOf(revision: Revision | undefined, runs: readonly ScenarioRun[]): string {
  const date = new Date().toISOString().slice(0, 10)
  return `${date}: ${summaryOf(runs)}\n\n${tableOf(head, rowsOf(revision, runs))}`
}

function summaryOf(runs: readonly ScenarioRun[]): string {
  const passed = (some: readonly ScenarioRun[]) => some.filter((run) => countOf(run, 'FAILURE') === 0).length
  const required = runs.filter(({ isRequired }) => isRequired)
  const others = runs.filter(({ isRequired }) => !isRequired)
  const more = others.length === 0 ? '' : `, ${passed(others)} of ${others.length} that are not scored`
  return `${passed(required)} of ${required.length} required scenarios pass${more}.`
}
