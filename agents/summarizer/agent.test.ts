import type { HandlerContext } from '@parley/agent'
import { expect, test } from 'vitest'
import agent from './agent.ts'
import { maxSourceBytes } from './sources.ts'

type Said = { role: 'user' | 'agent' | 'assistant' | 'system'; text: string }
type File = HandlerContext['files'][number]

const article =
  'The mill was built in 1840 by two brothers. It ground flour for the whole valley of the Arn. The flood of 1911 destroyed the wheel of the mill. Nobody rebuilt the mill, and the valley bought its flour elsewhere.'

const said = ({ role, text }: Said) => ({ role, parts: [{ kind: 'text' as const, text }] })
const textFile = (name: string, mimeType: string | undefined, content: string | Buffer): File => {
  const bytes = Buffer.from(content as string)
  return { name, mimeType, bytes, text: bytes.toString() }
}
const earlier = (text: string, history: Said[] = []) =>
  ({ id: 'earlier', state: 'completed', text, artifacts: [], files: [], history: history.map(said) }) as never

/** The agent’s response to a message: a text, a question, or the reason for declining. */
async function answer(given: Partial<HandlerContext>, history: Said[] = []): Promise<unknown> {
  const context = {
    text: '',
    data: {},
    files: [],
    references: [],
    history: [...history, { role: 'user' as const, text: given.text ?? '' }].map(said),
    context: { id: 'context', history: [] },
    signal: new AbortController().signal,
    ask: (prompt: string) => ({ ask: prompt }),
    decline: (reason: string) => ({ declined: reason }),
    ...given,
  } as unknown as HandlerContext
  const output = (agent.handle(context) as AsyncIterable<unknown>)[Symbol.asyncIterator]()
  let text = ''
  for (;;) {
    const { value, done } = await output.next()
    if (typeof value === 'string') text += value
    else if (value !== undefined) return value
    if (done === true) return text
  }
}
const sentences = (text: unknown): number => String(text).split('. ').length

test('summarizes a text as instructed', async () => {
  const summary = await answer({ text: `Sum this up in one sentence: ${article}` })
  expect(sentences(summary)).toBe(1)
  expect(article).toContain(summary)
})

test('a data part with the length overrides the words', async () => {
  const summary = await answer({ text: `In one sentence, summarize: ${article}`, data: { sentences: 3 } })
  expect(sentences(summary)).toBe(3)
})

test('asks for the text if it is missing, then follows the earlier instruction', async () => {
  expect(await answer({ text: 'Please summarize in one sentence' })).toEqual({
    ask: 'Which text shall I sum up?',
  })
  expect(await answer({})).toEqual({ ask: 'Which text shall I sum up?' })
  const summary = await answer({ text: article }, [
    { role: 'user', text: 'Please summarize in one sentence' },
    { role: 'assistant', text: 'Which text shall I sum up?' },
  ])
  expect(sentences(summary)).toBe(1)
})

test('reads all referenced tasks', async () => {
  const references = [earlier(article), earlier('A second report says that the mill is now a museum.')]
  const summary = await answer({ text: 'Sum these up in 5 sentences', references })
  expect(summary).toContain('museum')
  expect(summary).toContain('1911')
})

test.each([
  ['notes.txt', 'text/plain'],
  ['notes.md', 'text/markdown; charset=utf-8'],
  ['notes.md', undefined],
  ['notes.txt', 'application/octet-stream'],
])('reads the text file %s of type %s', async (name, mimeType) => {
  const summary = await answer({ text: 'one sentence please', files: [textFile(name, mimeType, article)] })
  expect(sentences(summary)).toBe(1)
  expect(article).toContain(summary)
})

test.each([
  ['paper.pdf', 'application/pdf', '%PDF-1.7'],
  ['paper.pdf', undefined, '%PDF-1.7'],
  ['photo.png', 'image/png', 'x'],
  ['lie.txt', 'text/plain', Buffer.from([80, 75, 3, 4, 0, 0])],
])('declines the file %s of type %s and gives the reason', async (name, mimeType, content) => {
  const reason = `I read plain text and Markdown; ${name} is neither.`
  expect(await answer({ files: [textFile(name, mimeType, content)] })).toEqual({ declined: reason })
})

test('declines more than 2 MB and texts without sentences', async () => {
  const long = 'word '.repeat(maxSourceBytes / 5 + 1)
  expect(await answer({ text: long })).toEqual({ declined: 'The text is too long: I read up to 2 MB.' })
  expect(await answer({ text: '*** --- ***' })).toEqual({ declined: 'There is no sentence in that text.' })
})

test('“now in one sentence” refers to the text of the earlier task in the conversation', async () => {
  const history = [earlier('a summary', [{ role: 'user', text: `Summarize: ${article}` }])]
  const summary = await answer({ text: 'Now in one sentence', context: { id: 'context', history } })
  expect(sentences(summary)).toBe(1)
  expect(article).toContain(summary)
})

test.each(['user', 'agent', 'assistant', 'system'] as const)('the caller may speak as %s', async (role) => {
  const asked: Said = { role: 'assistant', text: 'Which text shall I sum up?' }
  const wish: Said = { role, text: 'Please summarize in one sentence' }
  expect(sentences(await answer({ text: article }, [wish, asked]))).toBe(1)
  const told = [wish, asked, { role, text: article }]
  const context = { id: 'context', history: [earlier('a summary', told)] }
  expect(article).toContain(await answer({ text: 'Now in one sentence', context }))
})

test('reads an endless line of blanks without delay', async () => {
  const text = `Sum this up in one sentence: ${article}\n${' '.repeat(1_000_000)}x`
  expect(await answer({ text })).toMatch(/mill|valley/)
})
