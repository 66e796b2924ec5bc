import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'

const file = path.join(import.meta.dirname, 'security.md')
const rows = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| statement') && line.includes('.ts)'))

const statements = rows.map((line) => {
  const [, statement = '', tests = ''] = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
  const links = [...tests.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, title = '', to = '']) => ({
    title,
    to,
  }))
  return { statement, links }
})

describe('the threat model', () => {
  test('states what the parties can and cannot do', () => {
    expect(statements.length).toBeGreaterThan(30)
  })

  test.each(statements)('$statement', ({ links }) => {
    expect(links).not.toEqual([])
    const missing = links.filter(({ title, to }) => {
      const target = path.resolve(path.dirname(file), to)
      return !existsSync(target) || !readFileSync(target, 'utf8').includes(title)
    })
    expect(missing).toEqual([])
  })
})
