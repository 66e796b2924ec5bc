import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { countLine, countPlaywright, countVitest, wronglySkipped } from './count.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-count-'))
afterAll(() => rmSync(folder, { recursive: true }))

const vitestReport = report('vitest.json', {
  numPassedTests: 3,
  numFailedTests: 1,
  testResults: [
    { status: 'passed', assertionResults: [{ status: 'passed', fullName: 'a' }] },
    {
      status: 'passed',
      assertionResults: [{ status: 'skipped', fullName: 'redis (needs redis-server) works' }],
    },
    { status: 'passed', assertionResults: [{ status: 'todo', fullName: 'later' }] },
    {
      name: 'b.test.ts',
      status: 'failed',
      assertionResults: [{ status: 'failed', fullName: 'b', failureMessages: ['Error: no\n    at b'] }],
    },
  ],
})
const playwrightReport = report('playwright.json', {
  suites: [
    {
      title: 'page.spec.ts',
      specs: [
        { title: 'starts', tests: [{ status: 'expected' }] },
        { title: 'flaky', tests: [{ status: 'flaky' }] },
      ],
      suites: [{ title: 'browser', specs: [{ title: 'shows', tests: [{ status: 'skipped' }] }] }],
    },
  ],
})

test('the last line contains the total numbers of passed, failed and skipped tests', () => {
  const counts = [countVitest(vitestReport, 1), countPlaywright(playwrightReport, 1)]
  expect(countLine(counts)).toBe('4 passed, 2 failed, 3 skipped')
  expect(counts.flatMap((count) => count.skipped)).toEqual([
    'redis (needs redis-server) works',
    'later',
    'page.spec.ts browser shows',
  ])
})

test('failed tests are listed with the first line of their error', () => {
  const counts = [countVitest(vitestReport, 1), countPlaywright(playwrightReport, 1)]
  expect(counts.flatMap(({ failures }) => failures)).toEqual(['b.test.ts b: Error: no', 'page.spec.ts flaky'])
})

const green = { numPassedTests: 2, numFailedTests: 0, testResults: [] }
const nothing = { numPassedTests: 0, numFailedTests: 0, testResults: [] }
test.each([
  ['left no report', path.join(folder, 'absent.json'), 0, 'vitest left no report (exit code 0)'],
  ['exited with an error outside the tests', report('green.json', green), 1, 'no test failed (exit code 1)'],
  ['ran no test', report('nothing.json', nothing), 0, 'no test ran (exit code 0)'],
])('a suite that %s counts as a failure', (_what, file, exitCode, failure) => {
  expect(countVitest(file, exitCode)).toMatchObject({ failed: 1, failures: [failure] })
})

test('a file that fails to load counts as a failure in addition to the failed tests', () => {
  const failedTest = {
    name: 'a.test.ts',
    status: 'failed',
    assertionResults: [{ status: 'failed', fullName: 'a' }],
  }
  const unloadable = { name: 'b.test.ts', status: 'failed', message: 'no file', assertionResults: [] }
  const content = { numPassedTests: 1, numFailedTests: 1, testResults: [failedTest, unloadable] }
  const failures = ['a.test.ts a', 'b.test.ts: no file']
  expect(countVitest(report('unloadable.json', content), 1)).toEqual({
    passed: 1,
    failed: 2,
    failures,
    skipped: [],
  })
})

test('an end-to-end suite that ran no test counts as a failure', () => {
  expect(countPlaywright(report('empty.json', { suites: [] }), 0).failed).toBe(1)
})

test('a test may be skipped only when it names a missing program', () => {
  const skipped = ['redis (needs redis-server) works', 'chat (needs chromium) shows', 'no reason']
  expect(wronglySkipped(skipped, (program) => program === 'chromium')).toEqual([
    'chat (needs chromium) shows',
    'no reason',
  ])
})

test('a test skipped in one project is listed with the project and the reason', () => {
  const skip = [{ type: 'serial' }, { type: 'skip', description: '(needs mongod, redis-server)' }]
  const tests = [
    { status: 'expected', projectName: 'embedded' },
    { status: 'skipped', projectName: 'full', annotations: skip },
  ]
  const suites = [{ title: 'page.spec.ts', specs: [{ title: 'starts (needs chromium)', tests }] }]
  const { passed, skipped } = countPlaywright(report('projects.json', { suites }), 0)
  expect(passed).toBe(1)
  expect(skipped).toEqual(['[full] page.spec.ts starts (needs chromium) (needs mongod, redis-server)'])
  expect(wronglySkipped(skipped, (program) => program === 'chromium')).toEqual([])
  expect(wronglySkipped(skipped, () => true)).toEqual(skipped)
})

test('a suite that needs two programs may be skipped when one is missing', () => {
  const skipped = ['all (needs mongod, redis-server) work']
  expect(wronglySkipped(skipped, (program) => program === 'mongod')).toEqual([])
  expect(wronglySkipped(skipped, () => true)).toEqual(skipped)
})

function report(name: string, content: object): string {
  const file = path.join(folder, name)
  writeFileSync(file, JSON.stringify(content))
  return file
}
