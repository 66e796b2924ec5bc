import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { errorTable } from '@parley/wire/errors'
import { expect, test } from 'vitest'

type Row = { code: number; status: number; message?: string }

const permanentFile = path.join(import.meta.dirname, 'permanent-errors.json')
const permanent = JSON.parse(readFileSync(permanentFile, 'utf8')) as Record<string, Row>
const table = Object.entries(errorTable) as [string, Row][]

test('docs/errors.md matches the error table', () => {
  expect(documented()).toEqual(Object.fromEntries(table))
})

test('every error code ever published keeps its name, number and HTTP status', () => {
  const now = Object.fromEntries(table.map(([name, { code, status }]) => [name, { code, status }]))
  expect(now).toEqual(permanent)
})

test('no two errors share a code', () => {
  const codes = table.map(([, { code }]) => code)
  expect(new Set(codes).size).toBe(codes.length)
})

test('the list of permanent errors contains every entry of earlier commits unchanged', () => {
  for (const earlier of earlierLists()) expect(permanent).toMatchObject(earlier)
})

/** The lists of all commits that the clone contains; none outside a clone. */
function earlierLists(): Record<string, Row>[] {
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  try {
    const commits = git('log', '--format=%H', '--diff-filter=AM', '--', 'permanent-errors.json').split('\n')
    return commits
      .filter(Boolean)
      .map((commit) => JSON.parse(git('show', `${commit}:./permanent-errors.json`)) as never)
  } catch {
    return []
  }
}

function documented(): Record<string, Row> {
  const markdown = readFileSync(path.join(import.meta.dirname, 'errors.md'), 'utf8')
  const rows = markdown.matchAll(/^\| (-\d+) \| (\w+) \| (\d+) \| ([^|]+) \|/gm)
  return Object.fromEntries(
    [...rows].map(([, code, name, status, message]) => [
      name,
      { code: Number(code), status: Number(status), message },
    ]),
  )
}
