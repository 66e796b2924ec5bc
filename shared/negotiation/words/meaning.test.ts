import { statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { boundedByWords } from '../score/evidence.ts'
import { readQuery } from '../score/query.ts'
import { placeOf, relatedTo } from './english.ts'
import { dimensions, likeness, meaningOf } from './meaning.ts'

const of = (text: string) => readQuery(text).meaning

test('every line of english.txt has a vector, and its related stems are in the list', () => {
  const bytes = statSync(new URL('./english.vec', import.meta.url)).size
  expect(bytes % dimensions).toBe(0)
  const words = ['music', 'weather', 'translat', 'soccer']
  for (const word of words) {
    expect(placeOf(word)).toBeLessThan(bytes / dimensions)
    for (const [related, share] of relatedTo(word)) {
      expect(placeOf(related)).toBeDefined()
      expect(share).toBeLessThan(1)
    }
  }
  expect(relatedTo('soccer').map(([stem]) => stem)).toContain('footbal')
})

test.each([
  ['play a song by this band', 'listen to music', 'repair a car engine'],
  ['will it rain tomorrow', 'weather forecast', 'divorce lawyer'],
  ['cheap flight to Rome', 'book airline tickets', 'bake bread'],
])('%s is closer to %s than to %s', (text, near, far) => {
  expect(likeness(of(text), of(near))).toBeGreaterThan(likeness(of(text), of(far)))
})

test('a direction depends neither on word order nor on repetitions', () => {
  expect(of('invoice payment overdue')).toEqual(of('overdue overdue payment invoice'))
})

test.each(['', 'zzqx wvkj', 'ทดสอบ', '🎵'])('a text without an English word has no direction: %j', (text) => {
  expect(of(text)).toBeUndefined()
  expect(likeness(of(text), of('music'))).toBe(0)
})

test('similarity is between 0 and 1, and equal directions have similarity 1', () => {
  const music = meaningOf(['music', 'song'])
  expect(likeness(music, music)).toBeCloseTo(1, 12)
})

test('the direction does not count without word evidence', () => {
  expect(boundedByWords(5, 0)).toBe(0)
  expect(boundedByWords(5, 1)).toBe(2)
})
