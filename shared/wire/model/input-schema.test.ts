import { expect, test } from 'vitest'
import { faultOfInputSchema, keptInputSchema, schemaMaxChars } from './input-schema.ts'

const nested = (levels: number): object =>
  levels === 0 ? { type: 'string' } : { properties: { a: nested(levels - 1) } }

test('a schema of an object with references to its own parts is kept', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { tree: { $ref: '#/$defs/tree' }, $ref: { type: 'string' } },
    $defs: {
      tree: { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#/$defs/tree' } } } },
    },
  }
  expect(keptInputSchema(schema)).toBe(schema)
})

test.each<[string, unknown, string]>([
  ['text', 'object', 'is not an object'],
  ['a list', [{ type: 'object' }], 'is not an object'],
  ['a schema of text', { type: 'string' }, 'does not describe an object'],
  ['a schema without a type', {}, 'does not describe an object'],
  [
    'a remote reference',
    { type: 'object', items: [{ $ref: 'http://10.0.0.1/x' }] },
    'refers to another document',
  ],
  [
    'a remote dynamic reference',
    { type: 'object', not: { $dynamicRef: 'a.json#b' } },
    'refers to another document',
  ],
  ['a deep schema', { type: 'object', ...nested(30) }, 'is nested deeper than 24 levels'],
  [
    'a long schema',
    { type: 'object', description: 'x'.repeat(schemaMaxChars) },
    `is longer than ${schemaMaxChars} characters`,
  ],
])('%s is not kept', (_name, schema, fault) => {
  expect(faultOfInputSchema(schema)).toBe(fault)
})
