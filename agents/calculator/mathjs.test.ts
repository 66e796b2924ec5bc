import { expect, test } from 'vitest'
import { lockedDown } from './mathjs.ts'

test.each([
  'import({a: 1})',
  'createUnit("foo")',
  'evaluate("1 + 1")',
  'parse("1")',
  'simplify("x")',
  'derivative("x^2", "x")',
])('the language itself rejects %s, independently of the syntax check', (expression) => {
  expect(() => lockedDown().parse(expression).evaluate() as unknown).toThrow('is not available here')
})
