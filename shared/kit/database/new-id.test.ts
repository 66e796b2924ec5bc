import { expect, test } from 'vitest'
import { newId } from './new-id.ts'

test('an id is a UUID version 7 with its creation time', () => {
  const before = Date.now()
  const id = newId()
  expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  const made = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
  expect(made).toBeGreaterThanOrEqual(before)
  expect(made).toBeLessThanOrEqual(Date.now())
})

test('ids are unique', () => {
  const ids = Array.from({ length: 10_000 }, newId)
  expect(new Set(ids).size).toBe(ids.length)
})
