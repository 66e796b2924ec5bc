import { expect, test } from 'vitest'
import { lengthInput, lengthWishOf, sentencesWanted } from './length-wish.ts'

test.each([
  ['in 3 sentences', { sentences: 3 }],
  ['one sentence', { sentences: 1 }],
  ['a two-sentence summary', { sentences: 2 }],
  ['in a single sentence', { sentences: 1 }],
  ['a few sentences', { sentences: 3 }],
  ['in drei Sätzen', { sentences: 3 }],
  ['in einem Satz', { sentences: 1 }],
  ['en deux phrases', { sentences: 2 }],
  ['en tres frases', { sentences: 3 }],
  ['in due frasi', { sentences: 2 }],
  ['in vijf zinnen', { sentences: 5 }],
  ['в трёх предложениях', { sentences: 3 }],
  ['w dwóch zdaniach', { sentences: 2 }],
  ['用三句话总结', { sentences: 3 }],
  ['at most 80 words', { words: 80 }],
  ['3 sentences, at most 50 words', { sentences: 3, words: 50 }],
  ['5 bullet points', { sentences: 5, bullets: true }],
  ['the key points', { bullets: true }],
  ['20 % of it', { ratio: 0.2 }],
  ['one paragraph', { sentences: 4 }],
  ['a short summary', { sentences: 2 }],
  ['a detailed summary', { sentences: 10 }],
  ['in 0 sentences', {}],
  ['in 5000 sentences', { sentences: 100 }],
  ['Sum this up', {}],
  ['', {}],
])('parses “%s”', (instruction, wish) => {
  expect(lengthWishOf(instruction)).toEqual(wish)
})

test.each([
  [{ sentences: 3 }, 10, 3],
  [{ sentences: 30 }, 10, 10],
  [{ ratio: 0.5 }, 10, 5],
  [{ ratio: 0.01 }, 10, 1],
  [{}, 1, 1],
  [{}, 9, 3],
  [{}, 10_000, 7],
])('applying %j to %i sentences selects %i', (wish, available, wanted) => {
  expect(sentencesWanted(wish, available)).toBe(wanted)
})

test.each([
  { sentences: 0 },
  { sentences: 101 },
  { sentences: 'three' },
  { sentences: 1.5 },
  { words: -1 },
  { bullets: 'yes' },
])('rejects the data part %j', (input) => expect(lengthInput.safeParse(input).success).toBe(false))
