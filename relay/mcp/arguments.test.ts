import { expect, test } from 'vitest'
import { argumentsFor } from './arguments.ts'

const schema = {
  type: 'object',
  properties: { count: { type: 'number' }, name: { type: 'string' } },
  required: ['count'],
}
const spaces = ' '.repeat(3000)

test.each([
  ['lines', ' count: 2.5e1 \nname = a: b', { count: 25, name: 'a: b' }],
  ['a number with many digits and a letter', `${'1'.repeat(100_000)}x`, {}],
  ['a value with many spaces', `name:${spaces}b${spaces}\rc`, { name: `b${spaces}\rc` }],
])('the values in a text with %s are read in a time that grows with its length', (_what, text, values) => {
  expect(argumentsFor(schema, { data: {}, text })).toMatchObject({ values })
})
