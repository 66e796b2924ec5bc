import { expect, test } from 'vitest'
import { Canvas } from './drawing/canvas.ts'
import { margins } from './drawing/style.ts'
import { readMarkdown } from './markdown/read-markdown.ts'
import { png } from './testing.ts'
import { draw, typeset } from './typeset.ts'

interface Written {
  page: number
  text: string
  x: number
  baseline: number
}

/** Typesets a document and records its text with the positions. */
class Recorder extends Canvas {
  readonly written: Written[] = []
  readonly images: number[] = []
  readonly targets: string[] = []
  override text(text: string, at: Parameters<Canvas['text']>[1]): void {
    this.written.push({ page: this.pages, text, x: at.x, baseline: at.baseline })
    super.text(text, at)
  }
  override image(...args: Parameters<Canvas['image']>): void {
    this.images.push(args[3])
    super.image(...args)
  }
  override link(...args: Parameters<Canvas['link']>): void {
    this.targets.push(args[4])
    super.link(...args)
  }
}

function written(markdown: string, attachments: Parameters<typeof draw>[2] = []): Recorder {
  const document = readMarkdown(markdown)
  const canvas = new Recorder(document.meta, document.name)
  draw(document, canvas, attachments)
  return canvas
}
const job = (markdown: string) => ({ markdown, attachments: [], wishes: {} })
const filler = (lines: number): string => Array.from({ length: lines }, (_, n) => `Line ${n}.`).join('\n\n')

test('returns a reproducible PDF with a title and a page count', async () => {
  const one = await typeset(job('# Grüße\n\nHello, *world*.'))
  const two = await typeset(job('# Grüße\n\nHello, *world*.'))
  const text = Buffer.from(one.pdf).toString('latin1')
  expect(text).toMatch(/^%PDF-1\.\d/)
  expect(text).toMatch(/%%EOF\s*$/)
  expect(text).toContain('/Title')
  expect(text).not.toContain('CreationDate')
  expect(one).toMatchObject({ name: 'Grüße', pages: 1, missing: [] })
  expect(Buffer.from(one.pdf).equals(Buffer.from(two.pdf))).toBe(true)
})

test('has glyphs for Latin, Greek, Cyrillic and many symbols, and reports missing glyphs', async () => {
  const { missing } = await typeset(job('Ångström Ελληνικά Съешь ещё Tiếng Việt → ≤ ∑ ✓ € ₹ **Ж** *ω* `ß├─`'))
  expect(missing).toEqual([])
  expect((await typeset(job('漢字 and \ud800 and \u0000'))).missing).toEqual(['漢', '字'])
})

test('draws no boxes for invisible characters', async () => {
  expect((await typeset(job('a\u200Bb\u00ADc ☺\uFE0F \u202Ed\u202C \u{E0041}'))).missing).toEqual([])
})

test('every page has its number and the title in the footer', () => {
  const { written: all, pages } = written(`# The book\n\n${filler(100)}`)
  expect(pages).toBeGreaterThan(2)
  for (let page = 1; page <= pages; page += 1) {
    expect(all.filter(({ text }) => text === `${page} / ${pages}`)).toHaveLength(1)
  }
  expect(all.filter(({ text }) => text === 'The book')).toHaveLength(pages + 1)
})

test('writes nothing outside the margins', () => {
  const long = 'x'.repeat(400)
  const markdown = `# ${long}\n\n- ${long}\n\n> ${long}\n\n|a|${long}|\n|-|-|\n|${long}|b|\n\n\`\`\`\n${long}\n\`\`\`\n\n${'> '.repeat(30)}deep`
  const canvas = written(markdown)
  for (const { text, x, baseline } of canvas.written) {
    expect(x).toBeGreaterThanOrEqual(margins.left)
    expect(x + canvas.measure(text, 'regular', 1)).toBeLessThan(canvas.width - margins.right + 1)
    expect(baseline).toBeLessThan(canvas.height - 40)
    expect(baseline).toBeGreaterThan(margins.top)
  }
})

test('leaves no heading alone at the bottom of a page', () => {
  for (let lines = 20; lines < 32; lines += 1) {
    const { written: all } = written(`${filler(lines)}\n\n## Heading\n\nIts text.`)
    const heading = all.find(({ text }) => text === 'Heading')
    expect(heading?.page).toBe(all.find(({ text }) => text === 'Its text.')?.page)
  }
})

test('leaves no single line of a paragraph on either side of a page break', () => {
  const paragraph = 'word '.repeat(80)
  for (let lines = 20; lines < 32; lines += 1) {
    const { written: all } = written(`${filler(lines)}\n\n${paragraph}`)
    const perPage = Map.groupBy(
      all.filter(({ text }) => text.startsWith('word')),
      ({ page }) => page,
    )
    for (const part of perPage.values()) expect(part.length).toBeGreaterThan(1)
  }
})

test('repeats the table header on every page and does not split rows', () => {
  const rows = Array.from({ length: 120 }, (_, n) => `|row ${n}|${'word '.repeat(30)}|`).join('\n')
  const { written: all, pages } = written(`|Name|Text|\n|-|-|\n${rows}`)
  expect(all.filter(({ text }) => text === 'Name')).toHaveLength(pages)
  for (let n = 0; n < 120; n += 1) {
    const first = all.findIndex(({ text }) => text === `row ${n}`)
    const [row, cell] = [all[first], all[first + 1]]
    expect(cell?.page).toBe(row?.page)
    expect(cell?.baseline).toBe(row?.baseline)
  }
})

test('continues a row that is taller than a page on the next page', () => {
  const { written: all, pages } = written(`|a|b|\n|-|-|\n|${'word '.repeat(5000)}|x|`)
  expect(pages).toBeGreaterThan(2)
  const words = all.filter(({ text }) => text.startsWith('word')).map(({ text }) => text.split(' ').length)
  expect(words.reduce((sum, count) => sum + count, 0)).toBe(5000)
})

test('places images from data URIs and the message, at most as wide as the column, and replaces others with a note', () => {
  const bytes = png(2000, 20)
  const inline = `data:image/png;base64,${png(10, 10).toString('base64')}`
  const canvas = written(`![a](wide.png)\n\n![b](${inline})\n\n![c](http://127.0.0.1/c.png)`, [
    { name: 'wide.png', bytes },
  ])
  expect(canvas.images[0]).toBeCloseTo(canvas.width - margins.left - margins.right)
  expect(canvas.images[1]).toBeCloseTo(7.5)
  expect(canvas.written.map(({ text }) => text)).toContain('[Image “c”: not among the files]')
})

test('links point to the web or into the document', () => {
  expect(
    written('# A b\n\n[x](https://example.org/ü?q=1) [y](#a-b) [z](file:///etc/passwd)').targets,
  ).toEqual(['https://example.org/ü?q=1', '#a-b'])
})

test.each([
  ['nothing', ''],
  ['only a heading', '#'],
  ['empty entries', '-\n-\n  -'],
  ['an empty table', '| |\n|-|'],
  ['an empty quotation', '>'],
  ['empty code', '```\n```'],
  ['a bad link', '[a](http://%zz%) [b](https://x.org/\ud800)'],
  ['a link to nowhere', '[a](#nowhere)'],
  ['deep lists', Array.from({ length: 60 }, (_, depth) => `${'  '.repeat(depth)}- x`).join('\n')],
  ['many styles', '*a **b '.repeat(500)],
])('typesets %s', async (_, markdown) => {
  expect((await typeset(job(markdown))).pages).toBeGreaterThanOrEqual(1)
})
