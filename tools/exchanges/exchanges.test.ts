import path from 'node:path'
import { expect, test } from 'vitest'
import { compare, countOf, record } from './record.ts'

// Record intended changes with `node tools/exchanges/record.ts --write`.
test('every byte on the wire is as recorded', async () => {
  const files = await record(path.resolve(import.meta.dirname, '../..'))
  const found = await compare(files)
  expect(found.map(({ text }) => text).join('\n')).toBe('')
  expect(countOf(files)).toBeGreaterThanOrEqual(1700)
})
