import { expect, test } from 'vitest'
import { type LengthWish, sentencesWanted } from './length-wish.ts'
import { sentencesOf } from './sentences.ts'
import { summarize } from './summarize.ts'

const english = `The city council decided on Tuesday to build a new bridge over the river Arn.
The bridge will cost forty million euros and will carry trams, bicycles and pedestrians, but no cars.
It was raining on Tuesday. Some people had umbrellas.
Opponents say that a bridge without cars does not solve the traffic problem of the city.
The council answers that trams over the new bridge will replace eight thousand car journeys a day.
Lunch was served at noon.
A new bridge over the river Arn that will cost forty million euros was decided by the city council on Tuesday.
Work on the bridge begins in spring, and the first trams shall cross the river three years later.
My aunt once saw a heron there.`

const german = `Der Stadtrat beschloss am Dienstag den Bau einer neuen Brücke über die Arn.
Die Brücke kostet vierzig Millionen Euro und trägt Straßenbahnen, Fahrräder und Fußgänger, aber keine Autos.
Es regnete.
Gegner sagen, dass eine Brücke ohne Autos das Verkehrsproblem der Stadt nicht löst.
Der Rat erwidert, dass die Straßenbahnen auf der Brücke täglich achttausend Autofahrten ersetzen.
Das Mittagessen gab es um zwölf.`

const japanese =
  '市議会は新しい橋の建設を決めました。新しい橋には四千万ユーロかかります。雨でした。橋を渡る電車は車の代わりになります。昼食がありました。'

async function pieces(source: string, wish: LengthWish = {}): Promise<string[]> {
  return Array.fromAsync(summarize(source, { wish, signal: new AbortController().signal }))
}

test.each([
  ['English', english, /bridge/],
  ['German', german, /Brücke/],
  ['Japanese', japanese, /橋/],
])(
  'a summary in %s is made of sentences of the text, in its order, about its subject',
  async (_, source, subject) => {
    const chosen = (await pieces(source, { sentences: 2 })).map((piece) => piece.trim())
    const order = [...sentencesOf(source)].map((sentence) => sentence.text)
    expect(chosen).toHaveLength(2)
    const places = chosen.map((sentence) => order.indexOf(sentence))
    expect(places.every((place) => place >= 0)).toBe(true)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    for (const sentence of chosen) expect(sentence).toMatch(subject)
  },
)

test('does not select a sentence that repeats another', async () => {
  const chosen = (await pieces(english, { sentences: 3 })).join('')
  const repeated = ['decided on Tuesday to build', 'was decided by the city council'].filter((text) =>
    chosen.includes(text),
  )
  expect(repeated).toHaveLength(1)
})

test('does not select irrelevant sentences', async () => {
  const chosen = (await pieces(english, { sentences: 4 })).join('')
  expect(chosen).not.toMatch(/umbrellas|Lunch|heron|raining/)
})

test('yields one sentence at a time; the pieces form the text', async () => {
  const all = await pieces(english, { sentences: 3 })
  expect(all).toHaveLength(3)
  expect(all.join('')).toMatch(/^\S.*\. \S.*\. \S.*\.$/s)
  expect((await pieces(japanese, { sentences: 2 })).join('')).not.toContain(' ')
})

test('formats bullets as one line with a dash per sentence', async () => {
  const lines = (await pieces(english, { sentences: 3, bullets: true })).join('').split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines) expect(line).toMatch(/^- \S/)
})

test('respects a word limit, with at least one sentence', async () => {
  const words = (await pieces(english, { words: 40 })).join('').split(/\s+/)
  expect(words.length).toBeLessThanOrEqual(40)
  expect(words.length).toBeGreaterThan(10)
  expect((await pieces(english, { words: 1 })).length).toBe(1)
})

test('returns the same summary for the same text', async () => {
  expect(await pieces(english)).toEqual(await pieces(english))
})

test('returns all sentences if there are fewer than requested', async () => {
  expect((await pieces('One thing. Another thing.', { sentences: 5 })).join('')).toBe(
    'One thing. Another thing.',
  )
  expect(sentencesWanted({ sentences: 5 }, 2)).toBe(2)
})

test.each([
  ['empty', ''],
  ['only signs', '*** --- !!! ...'],
  ['only brackets', '['.repeat(200_000)],
  ['only a fence', '```'.repeat(50_000)],
])('returns an empty summary for a text that is %s', async (_, source) => {
  expect(await pieces(source)).toEqual([])
})

test.each([
  ['one word two hundred thousand times', 'word '.repeat(200_000)],
  ['one letter a million times', 'x'.repeat(1_000_000)],
  ['lone surrogates', '\ud800 a. '.repeat(100)],
  ['twenty thousand equal sentences', 'The same sentence again and again. '.repeat(20_000)],
])('returns a bounded summary for %s', async (_, source) => {
  const summary = (await pieces(source)).join('')
  expect(summary.length).toBeGreaterThan(0)
  expect(summary.length).toBeLessThan(6_000)
})

test('yields to other work while reading a long text, and stops on the signal', async () => {
  const stop = new AbortController()
  let turns = 0
  const ticking = setInterval(() => {
    turns += 1
    if (turns === 3) stop.abort(new Error('no longer wanted'))
  }, 1)
  const long = `${english}\n\n`.repeat(1500)
  const reading = Array.fromAsync(summarize(long, { signal: stop.signal }))
  await expect(reading).rejects.toThrow('no longer wanted')
  clearInterval(ticking)
  expect(turns).toBeGreaterThanOrEqual(3)
})
