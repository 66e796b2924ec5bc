import { expect, test } from 'vitest'
import { trainingWords } from '../score/learning.ts'
import type { TrainingExample } from '../score/training-example.ts'
import { summaryOf } from './learned-summary.ts'

const example = (
  text: string,
  outcome: number,
  caller = 'ann',
  more: Partial<TrainingExample> = {},
): TrainingExample => ({
  agent: 'sky',
  context: crypto.randomUUID(),
  caller,
  at: 1000,
  outcome,
  words: trainingWords(text),
  ...more,
})

test('the summary of no examples counts the missing ones', () => {
  expect(summaryOf([], { callersMin: 2 })).toEqual({
    examples: 0,
    positive: 0,
    negative: 0,
    since: undefined,
    callers: [],
    raisesScore: false,
    missing: { examples: 4, callers: 2 },
    words: { positive: [], negative: [] },
  })
})

test('positive and negative examples are counted, per caller, with the time of the oldest', () => {
  const all = [
    example('rain', 1, 'ann', { at: 3000 }),
    example('rain', 0.5, 'bob', { at: 2000 }),
    example('rain', -1, 'bob', { at: 4000 }),
    example('rain', 0, 'bob', { at: 5000 }),
  ]
  expect(summaryOf(all, { callersMin: 2 })).toMatchObject({
    examples: 4,
    positive: 2,
    negative: 1,
    since: 2000,
    callers: [
      { caller: 'bob', examples: 3, positive: 1, negative: 1, since: 2000 },
      { caller: 'ann', examples: 1, positive: 1, negative: 0, since: 3000 },
    ],
    raisesScore: false,
    // Two examples have the same text.
    missing: { examples: 3, callers: 0 },
  })
})

test('five positive examples of two callers raise the score, those of one caller do not', () => {
  const of = (...callers: string[]) =>
    callers.map((caller, at) => example(`rain in ${'abcde'[at]}town`, 1, caller))
  expect(summaryOf(of('a', 'a', 'a', 'a', 'b'), { callersMin: 2 }).raisesScore).toBe(true)
  expect(summaryOf(of('a', 'a', 'a', 'a', 'a'), { callersMin: 2 })).toMatchObject({
    raisesScore: false,
    missing: { examples: 0, callers: 1 },
  })
})

test('repeated use by three callers raises the score, that by two does not', () => {
  const of = (...callers: string[]) =>
    callers.map((caller, at) => example(`rain in ${'abcd'[at]}town`, 1, caller, { used: true }))
  expect(summaryOf(of('a', 'b', 'c', 'c'), { callersMin: 1 }).raisesScore).toBe(true)
  expect(summaryOf(of('a', 'b', 'b', 'b'), { callersMin: 1 }).raisesScore).toBe(false)
})

test('the words of positive and of negative examples are listed, rare words first, without stop words, pairs and numbers', () => {
  const all = [
    example('the forecast for the cities of Portugal', 1),
    example('forecast please', 1),
    example('translate the invoice 4711 b', -1, 'ann', {
      words: { ...trainingWords('translate the invoice b'), '4711': 1 },
    }),
  ]
  const { positive, negative } = summaryOf(all, { callersMin: 2, texts: ['Forecasts for any city'] }).words
  expect(positive[0]).toEqual({ word: 'forecasts', weight: 2 })
  expect(positive.map(({ word }) => word)).toEqual(expect.arrayContaining(['city', 'portug']))
  expect(positive.map(({ word }) => word)).not.toContain('the')
  expect(negative.map(({ word }) => word).toSorted()).toEqual(['invoic', 'translat'])
  expect(summaryOf(all, { callersMin: 2, wordsMax: 1 }).words.positive).toHaveLength(1)
})
