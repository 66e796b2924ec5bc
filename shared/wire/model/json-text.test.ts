import { expect, test } from 'vitest'
import { jsonObjectOf, jsonOf } from './json-text.ts'

test.each<[string, unknown, unknown]>([
  ['{"a":1}', { a: 1 }, { a: 1 }],
  ['[1]', [1], undefined],
  ['null', null, undefined],
  ['"a"', 'a', undefined],
  ['', undefined, undefined],
  ['{"seed":"secret"', undefined, undefined],
])('%s', (text, value, object) => {
  expect(jsonOf(text)).toEqual(value)
  expect(jsonObjectOf(text)).toEqual(object)
})
