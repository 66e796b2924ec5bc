import { expect, test } from 'vitest'
import { inputShapeOf, textSchema } from './input-schema.ts'

test('the schema of a skill is kept, with fields for files and the conversation', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { city: { $ref: '#/$defs/city' }, days: { type: 'integer', minimum: 1 } },
    $defs: { city: { type: 'string', enum: ['Rome', 'Oslo'] } },
    required: ['city'],
    additionalProperties: false,
  }
  const shape = inputShapeOf(schema)
  expect(shape).toMatchObject({ isStructured: true, schema })
  expect(Object.keys(shape.schema['properties'] ?? {})).toEqual([
    'parley_files',
    'parley_context_id',
    'parley_payment_session',
    'city',
    'days',
  ])
})

test('descriptions in a schema are cleaned, and headers that mirror arguments are left out', () => {
  const property = { type: 'string', description: 'a\u001B[8mhidden\u{E0041}', 'x-mcp-header': 'City' }
  const { schema } = inputShapeOf({ type: 'object', properties: { city: property } })
  expect(schema['properties']).toMatchObject({ city: { type: 'string', description: 'ahidden' } })
  expect(JSON.stringify(schema)).not.toContain('x-mcp-header')
})

const deep = (levels: number): object =>
  levels === 0 ? {} : { type: 'object', properties: { a: deep(levels - 1) } }

test.each([
  ['no schema', undefined],
  ['a schema of another type', { type: 'array', items: {} }],
  ['a large schema', { type: 'object', description: 'x'.repeat(40_000) }],
  ['a deep schema', deep(40)],
  ['invisible characters in a value', { type: 'object', properties: { a: { enum: ['\u202Ea'] } } }],
])('a skill with %s takes a text', (_what, published) => {
  expect(inputShapeOf(published)).toEqual({ schema: textSchema, isStructured: false })
})
