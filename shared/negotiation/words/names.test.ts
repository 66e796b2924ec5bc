import { expect, test } from 'vitest'
import { isNumber, namesIn } from './names.ts'

test.each<[string, string[]]>([
  ['make a pdf of this text: thank you for the order. Yours, Zxyq', ['zxyq']],
  ['make a pdf of this: thank you. yours sincerely, zxyq brown', ['zxyq', 'brown']],
  ['Please send the invoice.\nBest regards,\n\nPriya Patel', ['priya', 'patel']],
  ['Please send the invoice.\n\nOlumide', ['olumide']],
  ['Ada', ['ada']],
  ['Dear olumide, the invoice is paid', ['olumide']],
  ['Priya, could you draw a chart?', ['priya']],
  ['Draw a chart for Mr Olumide, signed Zxyq', ['olumide', 'zxyq']],
  ['Could Mary or Tom draw a chart?', ['mary', 'tom']],
])('%j names %j', (text, names) => {
  const found = namesIn(text).map((name) => name.toLowerCase())
  expect(found).toEqual(expect.arrayContaining(names))
})

test.each([
  'Convert the README to PDF and export the pages',
  'How is the price of Ethereum today? Chart it',
  'Make A Chart Of Sales By Region And Month',
  'will it rain tomorrow',
  'Find a hotel in New York, near Broadway',
  'How did the shares of Google and Tesla do in January?',
  'Hey there, what is on in Chicago?',
  'Translate it to French. Additionally, check the grammar. However, keep it short.',
  'MAKE A PDF OF THIS TEXT',
])('%j contains no personal name', (text) => {
  expect(namesIn(text)).toEqual([])
})

test('a word that also occurs in lower case is not a name', () => {
  expect(namesIn('Ask Grace for a grace period')).toEqual([])
})

test.each([
  ['12', true],
  ['89', true],
  ['5km', true],
  ['3rd', true],
  ['mp3', false],
  ['pdf', false],
])('whether %s counts as a number is %s', (word, expected) => {
  expect(isNumber(word)).toBe(expected)
})
