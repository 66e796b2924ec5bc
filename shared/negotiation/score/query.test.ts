import { expect, test } from 'vitest'
import { readQuery } from './query.ts'

const stemsOf = (text: string) => readQuery(text).terms.map(({ stem }) => stem)

test('a percent sign after a number is the word "percent"', () => {
  expect(stemsOf('17% of 89.90')).toEqual(['percent'])
  expect(stemsOf('a link to /a%20b')).not.toContain('percent')
})

test('numbers count only if a text has no other words', () => {
  expect(stemsOf('convert 70 fahrenheit to 21 celsius')).toEqual(stemsOf('convert fahrenheit to celsius'))
  expect(stemsOf('play an mp3 in 3d')).toEqual(expect.arrayContaining(['mp3', '3d']))
  expect(stemsOf('three sentences and sixteen words')).toEqual(stemsOf('sentences and words'))
  expect(stemsOf('12 * 30')).toEqual(['12', '30'])
})

test.each(['A', ' ', '：', 'x:', '“', '我A'])(
  'a text of 100,000 characters that repeats %j is read in linear time',
  (unit) => {
    const text = `… ${unit.repeat(100_000 / unit.length)}`
    expect(readQuery(text).terms.length).toBeLessThanOrEqual(64)
  },
  10_000,
)

test.each([
  ['a UUID', 'cancel order 0f7b6b0a-dead-48d1-face-b6e96aaa393b today'],
  ['a hash', 'cancel order 9fceb02d0ae598e95dc970b74767f19372d61af8 today'],
  ['an address', 'cancel order 0xDEADBEEFfacade today'],
])('%s is not a word', (_, text) => {
  const { terms, features } = readQuery(text)
  expect(terms).toEqual(readQuery('cancel order today').terms)
  expect(features).toEqual(readQuery('cancel order today').features)
})

test('words that look like hexadecimal numbers and short codes stay', () => {
  expect(stemsOf('a facade for the cafe in decade 1990s, model b52')).toEqual(
    expect.arrayContaining(['facad', 'cafe', 'decad', 'b52']),
  )
})

test('an identifier counts if the text has nothing else', () => {
  expect(stemsOf('0f7b6b0a-dead-48d1-face-b6e96aaa393b')).toContain('dead')
})
