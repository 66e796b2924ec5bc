import { existsSync, readFileSync } from 'node:fs'

/** The result of one suite. */
export interface Count {
  passed: number
  failed: number
  /** The failed tests and files with the first line of each error, if the report has them. */
  failures?: string[]
  /** Full names of the skipped tests. */
  skipped: string[]
}

/** `N passed, N failed, N skipped`: the last line of `npm test`. */
export function countLine(counts: Count[]): string {
  const sum = (of: (count: Count) => number) => counts.reduce((total, count) => total + of(count), 0)
  return `${sum((c) => c.passed)} passed, ${sum((c) => c.failed)} failed, ${sum((c) => c.skipped.length)} skipped`
}

interface VitestResult {
  status: string
  fullName: string
  failureMessages?: string[]
}

interface VitestReport {
  numPassedTests: number
  numFailedTests: number
  testResults: { name: string; status: string; message?: string; assertionResults: VitestResult[] }[]
}

/**
 * Reads vitest's JSON report. A file that failed without a failed test counts as one failure, and so does a run without
 * tests or with an error outside the files.
 */
export function countVitest(reportFile: string, exitCode: number): Count {
  const report = read(reportFile) as VitestReport | undefined
  if (report === undefined) return noReport('vitest', exitCode)
  const broken = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((result) => result.status !== 'failed'),
  )
  const skipped = report.testResults
    .flatMap((file) => file.assertionResults)
    .filter((result) => result.status !== 'passed' && result.status !== 'failed')
    .map((result) => result.fullName)
  const failed = report.numFailedTests + broken.length
  const failures = report.testResults.flatMap((file) => [
    ...(broken.includes(file) ? [withReason(file.name, file.message)] : []),
    ...file.assertionResults
      .filter((result) => result.status === 'failed')
      .map((result) => withReason(`${file.name} ${result.fullName}`, result.failureMessages?.[0])),
  ])
  return atLeastOneFailure({ passed: report.numPassedTests, failed, failures, skipped }, exitCode)
}

function withReason(name: string, message = ''): string {
  const [line = ''] = message.split('\n', 1)
  return line === '' ? name : `${name}: ${line.slice(0, 300)}`
}

interface PlaywrightSuite {
  title: string
  specs: { title: string; tests: PlaywrightTest[] }[]
  suites?: PlaywrightSuite[]
}
interface PlaywrightTest {
  status: string
  projectName?: string
  /** The reason given to `test.skip`. */
  annotations?: { type: string; description?: string }[]
}
interface PlaywrightReport {
  suites: PlaywrightSuite[]
}

/**
 * Reads Playwright's JSON report by the same rules. A flaky test counts as failed. The reason for skipping a test, which
 * names the required programs, is appended to the test's name.
 */
export function countPlaywright(reportFile: string, exitCode: number): Count {
  const report = read(reportFile) as PlaywrightReport | undefined
  if (report === undefined) return noReport('playwright', exitCode)
  const failures: string[] = []
  const count: Count = { passed: 0, failed: 0, failures, skipped: [] }
  const walk = (suite: PlaywrightSuite, path: string) => {
    for (const spec of suite.specs) {
      for (const test of spec.tests) {
        if (test.status === 'expected') count.passed++
        else if (test.status === 'skipped')
          count.skipped.push(`${project(test)}${path} ${spec.title}${reasons(test)}`)
        else {
          count.failed++
          failures.push(`${project(test)}${path} ${spec.title}`)
        }
      }
    }
    for (const inner of suite.suites ?? []) walk(inner, `${path} ${inner.title}`)
  }
  for (const suite of report.suites) walk(suite, suite.title)
  return atLeastOneFailure(count, exitCode)
}

function project({ projectName }: PlaywrightTest): string {
  return projectName ? `[${projectName}] ` : ''
}

function reasons({ annotations = [] }: PlaywrightTest): string {
  return annotations
    .map(({ type, description }) => (type === 'skip' && description ? ` ${description}` : ''))
    .join('')
}

function noReport(tool: string, exitCode: number): Count {
  return { passed: 0, failed: 1, failures: [`${tool} left no report (exit code ${exitCode})`], skipped: [] }
}

function atLeastOneFailure(count: Count, exitCode: number): Count {
  const ran = count.passed + count.failed
  if (count.failed > 0 || (exitCode === 0 && ran > 0)) return count
  const failure = `${ran === 0 ? 'no test ran' : 'no test failed'} (exit code ${exitCode})`
  return { ...count, failed: 1, failures: [failure] }
}

function read(file: string): unknown {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}

/**
 * Skipped tests that this machine could have run. A suite that requires programs names them in its title, `(needs
 * redis-server)`. A skipped test that names none, or only installed ones, is reported.
 */
export function wronglySkipped(skipped: string[], installed: (program: string) => boolean): string[] {
  return skipped.filter((name) => {
    const named = [...name.matchAll(/\(needs ([\w.-]+(?:, [\w.-]+)*)\)/g)]
    return named.flatMap(([, programs = '']) => programs.split(', ')).every(installed)
  })
}
