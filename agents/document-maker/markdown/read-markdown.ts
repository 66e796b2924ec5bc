import { lexer, type Token, type Tokens } from 'marked'
import type { Align, Block, Document, ListItem, Meta, Span } from '../document.ts'
import { decodeEntities } from './entities.ts'
import { defined, splitFrontMatter } from './front-matter.ts'
import { inlineOf, plainText } from './inline.ts'
import { shallow } from './shallow.ts'

/** Lists and quotes nested deeper than this are rendered as text. */
const deepest = 12
const mostColumns = 14

/** Reads Markdown (CommonMark with GitHub's tables, task lists and strike-through) into blocks. */
export function readMarkdown(source: string, wishes: Meta = {}): Document {
  const { meta, markdown } = splitFrontMatter(source)
  const blocks = blocksOf(lexer(shallow(markdown.replace(/\r\n?/g, '\n'))), anchors(), 0)
  const first = blocks.find((block) => block.kind === 'heading')
  const heading = first?.kind === 'heading' && first.level <= 2 ? plainText(first.spans) : undefined
  const said = { ...meta, ...defined(wishes) }
  // Does not repeat the title if the text already starts with it.
  if (said.title !== undefined && blocks[0] === first && heading === said.title) blocks.shift()
  return { meta: said, blocks, name: said.title ?? heading }
}

function blocksOf(tokens: Token[], anchor: (text: string) => string, depth: number): Block[] {
  return tokens.flatMap((token): Block[] => {
    switch (token.type) {
      case 'heading': {
        const { spans, images } = inlineOf(token.tokens)
        const level = Math.min(6, Math.max(1, (token as Tokens.Heading).depth))
        return [{ kind: 'heading', level, spans, anchor: anchor(plainText(spans)) }, ...imageBlocks(images)]
      }
      case 'list':
        return depth >= deepest ? flat(token) : [listOf(token as Tokens.List, anchor, depth)]
      case 'blockquote':
        return depth >= deepest
          ? flat(token)
          : [{ kind: 'quote', blocks: blocksOf(token.tokens ?? [], anchor, depth + 1) }]
      case 'table':
        return tableOf(token as Tokens.Table)
      case 'code':
        return [{ kind: 'code', text: (token as Tokens.Code).text }]
      case 'hr':
        return [{ kind: 'rule' }]
      case 'html':
        return htmlText(token.raw)
      case 'space':
      case 'def':
      case 'checkbox':
        return []
      default:
        return textBlocks(token)
    }
  })
}

function textBlocks(token: Token): Block[] {
  const tokens = 'tokens' in token && token.tokens !== undefined ? token.tokens : [token]
  const { spans, images } = inlineOf(tokens)
  const text: Block[] = plainText(spans) === '' ? [] : [{ kind: 'paragraph', spans }]
  return [...text, ...imageBlocks(images)]
}

const imageBlocks = (images: { source: string; alt: string }[]): Block[] =>
  images.map(({ source, alt }) => ({ kind: 'image', source, alt }))

function listOf(token: Tokens.List, anchor: (text: string) => string, depth: number): Block {
  const items = token.items.map((item): ListItem => {
    const blocks = blocksOf(item.tokens, anchor, depth + 1)
    return item.task ? { blocks, done: item.checked === true } : { blocks }
  })
  const start = token.start === '' ? 1 : token.start
  return { kind: 'list', ordered: token.ordered, start, loose: token.loose, items }
}

function tableOf(token: Tokens.Table): Block[] {
  const align = token.align.map((side): Align => side ?? 'left')
  const cells = (row: Tokens.TableCell[]) => row.map(({ tokens }) => inlineOf(tokens).spans)
  const rows = [cells(token.header), ...token.rows.map(cells)]
  return align.length > mostColumns ? records(rows) : [{ kind: 'table', align, rows }]
}

/** Renders a table that is too wide for a page as one paragraph per row with labelled values. */
function records([header = [], ...rows]: Span[][][]): Block[] {
  return rows.map((row): Block => {
    const spans = row.flatMap((cell, column): Span[] => {
      const name = plainText(header[column] ?? [])
      const between = column === 0 ? '' : '; '
      return plainText(cell) === '' ? [] : [{ text: between }, { text: `${name}: `, bold: true }, ...cell]
    })
    return { kind: 'paragraph', spans }
  })
}

/** Text between tags, without comments, scripts and styles. */
function htmlText(raw: string): Block[] {
  const text = raw
    .replace(/<!--[\s\S]*?(?:-->|$)/g, '')
    .replace(/<(script|style)\b[\s\S]*?(?:<\/\1>|$)/gi, '')
    .replace(/<[^>]{0,2000}>/g, ' ')
    .trim()
  return text === '' ? [] : [{ kind: 'paragraph', spans: [{ text: decodeEntities(text) }] }]
}

const flat = (token: Token): Block[] => [
  { kind: 'paragraph', spans: [{ text: token.raw.replace(/^[\s>*+-]+/gm, '') }] },
]

/** Creates heading anchors as GitHub does, so that `[see](#a-heading)` works. */
function anchors(): (text: string) => string {
  const used = new Map<string, number>()
  return (text) => {
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
      .slice(0, 100)
    const times = used.get(slug) ?? 0
    used.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  }
}
