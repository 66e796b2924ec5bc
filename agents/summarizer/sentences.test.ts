import { expect, test } from 'vitest'
import { sentencesOf } from './sentences.ts'

const texts = (source: string): string[] => [...sentencesOf(source)].map((sentence) => sentence.text)

test.each([
  ['One. Two! Three?', ['One.', 'Two!', 'Three?']],
  ['Dr. Smith met Mr. Jones. They talked.', ['Dr. Smith met Mr. Jones.', 'They talked.']],
  ['J. S. Bach lived here. He left.', ['J. S. Bach lived here.', 'He left.']],
  ['Wir essen z. B. Brot. Es schmeckt.', ['Wir essen z. B. Brot.', 'Es schmeckt.']],
  ['It costs 3.50 euros. Cheap.', ['It costs 3.50 euros.', 'Cheap.']],
  ['今日は晴れです。明日は雨です。', ['今日は晴れです。', '明日は雨です。']],
  ['Это дом. Он старый.', ['Это дом.', 'Он старый.']],
  ['A line that is\nwrapped here. Next.', ['A line that is wrapped here.', 'Next.']],
  ['- First entry\n- Second entry', ['First entry', 'Second entry']],
  ['It was founded in\n1998. It grew.', ['It was founded in 1998.', 'It grew.']],
  ['', []],
  ['---\n\n...', []],
])('splits %j into sentences', (source, sentences) => {
  expect(texts(source)).toEqual(sentences)
})

test('removes headings, code, tables, front matter, images and Markdown markup', () => {
  const source = [
    '---\ntitle: x\n---',
    '# A heading',
    'Some **bold** and *soft* [link](https://example.org/a) text with `code`. ![chart](data:image/png;base64,AAAA)',
    '```js\nconst x = 1. Not prose.\n```',
    '| a | b |\n|---|---|\n| 1 | 2 |',
    '> A quoted sentence.',
  ].join('\n')
  expect(texts(source)).toEqual(['Some bold and soft link text with code.', 'A quoted sentence.'])
})

test('cuts endless sentences between words and never inside a character', () => {
  const words = texts('word '.repeat(1000))
  expect(Math.max(...words.map((text) => text.length))).toBeLessThanOrEqual(600)
  expect(words.join(' ')).toBe('word '.repeat(1000).trim())
  const letters = texts(`a${'𝒳'.repeat(1000)}`)
  expect(letters.join('')).toBe(`a${'𝒳'.repeat(1000)}`)
  for (const piece of letters) expect(piece.isWellFormed()).toBe(true)
})

test('a sentence has its index in the text and in its paragraph', () => {
  const places = [...sentencesOf('One. Two.\n\nThree.')].map(({ index, inParagraph }) => [index, inParagraph])
  expect(places).toEqual([
    [0, 0],
    [1, 1],
    [2, 0],
  ])
})
