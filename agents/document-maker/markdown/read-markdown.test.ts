import { expect, test } from 'vitest'
import type { Block } from '../document.ts'
import { readMarkdown } from './read-markdown.ts'

const blocks = (markdown: string): Block[] => readMarkdown(markdown).blocks

test('headings have a level and a unique anchor', () => {
  expect(blocks('# One Two!\n\n## One two')).toEqual([
    { kind: 'heading', level: 1, spans: [{ text: 'One Two!' }], anchor: 'one-two' },
    { kind: 'heading', level: 2, spans: [{ text: 'One two' }], anchor: 'one-two-1' },
  ])
})

test('reads nested styles, allowed links and entities', () => {
  const [paragraph] = blocks(
    '**a *b*** `c&lt;` ~~d~~ [e](https://x.org) [f](javascript:alert) [g](#h) &euro;&#233;',
  )
  expect(paragraph).toEqual({
    kind: 'paragraph',
    spans: [
      { text: 'a ', bold: true },
      { text: 'b', bold: true, italic: true },
      { text: ' ' },
      { text: 'c&lt;', mono: true },
      { text: ' ' },
      { text: 'd', strike: true },
      { text: ' ' },
      { text: 'e', link: 'https://x.org' },
      { text: ' ' },
      { text: 'f' },
      { text: ' ' },
      { text: 'g', link: '#h' },
      { text: ' €é' },
    ],
  })
})

test('lists keep numbers, task marks and nested content', () => {
  const text = (words: string): Block => ({ kind: 'paragraph', spans: [{ text: words }] })
  expect(blocks('3. three\n4. four\n   - [x] done\n   - [ ] open')).toEqual([
    {
      kind: 'list',
      ordered: true,
      start: 3,
      loose: false,
      items: [
        { blocks: [text('three')] },
        {
          blocks: [
            text('four'),
            {
              kind: 'list',
              ordered: false,
              start: 1,
              loose: false,
              items: [
                { blocks: [text('done')], done: true },
                { blocks: [text('open')], done: false },
              ],
            },
          ],
        },
      ],
    },
  ])
})

test('tables keep their alignment, and a table too wide for a page becomes paragraphs', () => {
  expect(blocks('|a|b|\n|:-:|-:|\n|1|**2**|')).toEqual([
    {
      kind: 'table',
      align: ['center', 'right'],
      rows: [
        [[{ text: 'a' }], [{ text: 'b' }]],
        [[{ text: '1' }], [{ text: '2', bold: true }]],
      ],
    },
  ])
  const wide = `|${'h|'.repeat(20)}\n|${'-|'.repeat(20)}\n|${'v|'.repeat(20)}\n|${'w|'.repeat(20)}`
  expect(blocks(wide).map(({ kind }) => kind)).toEqual(['paragraph', 'paragraph'])
})

test('images become separate blocks, and HTML is reduced to its text without scripts', () => {
  expect(blocks('see ![plan](plan.png) here')).toEqual([
    { kind: 'paragraph', spans: [{ text: 'see ' }, { text: ' here' }] },
    { kind: 'image', source: 'plan.png', alt: 'plan' },
  ])
  expect(blocks('<div>hello <b>you</b><script>bad()</script><!-- no --></div>')).toEqual([
    { kind: 'paragraph', spans: [{ text: 'hello  you' }] },
  ])
  expect(blocks('a<br>b <b>c</b> d')).toEqual([
    {
      kind: 'paragraph',
      spans: [{ text: 'a' }, { text: '\n' }, { text: 'b ' }, { text: 'c', bold: true }, { text: ' d' }],
    },
  ])
})

test('options override the title and author in the front matter, and a repeated title appears once', () => {
  const { meta, name, blocks } = readMarkdown(
    '---\ntitle: Report\nauthor: [A, B]\ndate: 2026-01-02\npageSize: Letter\n---\n# Report\n\ntext',
    {
      author: 'C',
    },
  )
  expect(meta).toEqual({ title: 'Report', author: 'C', date: '2026-01-02', pageSize: 'letter' })
  expect(name).toBe('Report')
  expect(blocks.map(({ kind }) => kind)).toEqual(['paragraph'])
})

test('the first heading is the title if none is given', () => {
  expect(readMarkdown('text\n\n# First *heading*').name).toBe('First heading')
  expect(readMarkdown('text').name).toBeUndefined()
})

test.each([
  ['a rule at the start', '---\n\ntext'],
  ['front matter that is no YAML', '---\na: [\n---\ntext'],
  ['front matter that is a list', '---\n- a\n---\ntext'],
  [
    'an alias bomb',
    `---\na: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]\n---\ntext`,
  ],
])('%s is harmless', (_, markdown) => {
  const { meta, blocks } = readMarkdown(markdown)
  expect(meta).toEqual({})
  expect(JSON.stringify(blocks)).toContain('text')
})

test('renders lists and quotes that are nested too deep as text', () => {
  const deep = `${'> '.repeat(100)}deep down`
  expect(JSON.stringify(blocks(deep))).toContain('deep down')
  expect(JSON.stringify(blocks(deep)).match(/quote/g)).toHaveLength(12)
})
