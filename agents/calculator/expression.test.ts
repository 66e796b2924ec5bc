import { expect, test } from 'vitest'
import { ExpressionFault, expressionFrom } from './expression.ts'

test.each([
  ['what is 2+2?', '2+2'],
  ["What's the square root of 2?", 'sqrt(2)'],
  ['Please tell me what is 3 * 4.', '3 * 4'],
  ['Calculate 3 kg in lb', '3 kg in lb'],
  ['can you compute (2 + 3) * 4 for me?', '(2 + 3) * 4'],
  ['How much is 7 times 8 please?', '7 * 8'],
  ['How many cm are in 12 inches?', '12 inches to cm'],
  ['What is 15% of 80?', '15% * 80'],
  ['20 percent of 50', '20% * 50'],
  ['5 feet 3 inches to cm', '(5 feet + 3 inches) to cm'],
  ['2 hours and 30 minutes in seconds', '(2 hours + 30 minutes) in seconds'],
  ['20 °C in °F', '20 degC in degF'],
  ['20 degrees Celsius to Fahrenheit', '20 celsius to fahrenheit'],
  ['average of 1, 2 and 3', 'mean(1, 2, 3)'],
  ['what is the determinant of [1, 2; 3, 4]?', 'det([1, 2; 3, 4])'],
  ['1,250,000 / 4', '1250000 / 4'],
  ['max(1,200)', 'max(1,200)'],
  ['6 × 7 ÷ 2 − 1', '6 * 7 / 2 - 1'],
  ['5!', '5!'],
  ['2 + 2 =', '2 + 2'],
  ['evaluate("1")', 'evaluate("1")'],
  ['What is the result?\n```\na = 3\na * 2\n```', 'a = 3\na * 2'],
  ['concat("what is", "in")', 'concat("what is", "in")'],
])('the words around an expression are left aside: %j', (text, expression) => {
  expect(expressionFrom(text, {})).toEqual({ expression })
})

test('a data part says expression and precision, as they are', () => {
  expect(expressionFrom('ignored', { expression: ' 1/3 ', precision: 30 })).toEqual({
    expression: '1/3',
    precision: 30,
  })
})

test.each([
  ['nothing', '', {}],
  ['only words', 'what is?', {}],
  ['an expression that is no text', '', { expression: 4 }],
  ['too long', '1+'.repeat(3000), {}],
  ['no digits', '', { expression: '1', precision: 0 }],
  ['too many digits', '', { expression: '1', precision: 65 }],
  ['half a digit', '', { expression: '1', precision: 1.5 }],
  ['digits as text', '', { expression: '1', precision: '5' }],
])('is asked back with how to say it: %s', (_name, text, data) => {
  expect(() => expressionFrom(text, data)).toThrow(ExpressionFault)
})

test('marks without number do not hold up the reading', () => {
  const hostile = `${'?'.repeat(1900)}a${'= ?! '.repeat(380)}b`
  expect(expressionFrom(hostile, {}).expression).toContain('b')
  expect(expressionFrom(`2 + 2 ${'= ? please! '.repeat(300)}`, {}).expression).toBe('2 + 2')
})
