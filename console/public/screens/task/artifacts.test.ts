import { expect, test } from 'vitest'
import { tokensOf } from '../../components/markdown.js'
import { looksLikeMarkdown } from './artifacts.js'

const typesOf = (text: string) => tokensOf(text).map(({ type }) => type)

test('a text is recognized as Markdown by its name or its beginning', () => {
  for (const text of ['# Title', 'a\n  - item', '**bold**', '```\ncode\n```'])
    expect(looksLikeMarkdown(text, '')).toBe(true)
  expect(looksLikeMarkdown('plain', 'report.md')).toBe(true)
  expect(looksLikeMarkdown('a - b * c', 'report.txt')).toBe(false)
})

test('a million line ends are recognized as plain text before the test runs out of time', () => {
  expect(looksLikeMarkdown(`a${'\n'.repeat(1_000_000)}`, '')).toBe(false)
})

test('texts whose reading or rendering would stop the page are shown as they are', () => {
  for (const text of ['_a'.repeat(50_000), 'a'.repeat(100_000), '>'.repeat(200), '>'.repeat(100_000)])
    expect(typesOf(text)).toEqual(['code'])
  expect(typesOf(`# Title\n\n${'Words of a report.\n\n'.repeat(2000)}`).slice(0, 3)).toEqual([
    'heading',
    'space',
    'paragraph',
  ])
  expect(typesOf('> > > a')).toEqual(['blockquote'])
})
