import { expect, test } from 'vitest'
import { z } from 'zod'
import { publishedInput } from './input-schema.ts'

test('the schema describes the input before defaults and transforms', () => {
  const input = z.object({ count: z.number().default(3), at: z.string().transform(Number), day: z.date() })
  expect(publishedInput({ input })).toMatchObject({
    schema: {
      type: 'object',
      properties: { count: { type: 'number', default: 3 }, at: { type: 'string' }, day: {} },
      required: ['at', 'day'],
    },
  })
})

test('a union of objects is published as a schema of an object', () => {
  const input = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])
  expect(publishedInput({ input })).toMatchObject({ schema: { type: 'object', anyOf: [{}, {}] } })
})

test('a schema that refers to itself keeps its reference', () => {
  const tree = z.object({
    get kids() {
      return z.array(tree)
    },
  })
  expect(publishedInput({ input: tree })).toMatchObject({
    schema: { properties: { kids: { items: { $ref: '#' } } } },
  })
})

test('a skill without an input publishes no schema', () => {
  expect(publishedInput({})).toBeUndefined()
})

test.each<[string, z.ZodType, string]>([
  ['text', z.string(), 'does not describe an object'],
  ['a schema of another library', Object.create({}), 'cannot be written as JSON Schema'],
  ['a long schema', z.object({ a: z.enum(['x'.repeat(40_000)]) }), 'is longer than 32768 characters'],
])('%s is not published', (_name, input, fault) => {
  expect(publishedInput({ input })).toEqual({ fault })
})
