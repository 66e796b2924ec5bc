import type { Token, Tokens } from 'marked'
import type { Span } from '../document.ts'
import { decodeEntities } from './entities.ts'

export interface Inline {
  spans: Span[]
  images: { source: string; alt: string }[]
}

type Style = Omit<Span, 'text'>

/** Converts inline tokens to styled text; images become separate blocks. */
export function inlineOf(tokens: Token[] | undefined, style: Style = {}): Inline {
  const spans: Span[] = []
  const images: Inline['images'] = []
  const nested = (inner: Token[] | undefined, more: Style = {}) => {
    const found = inlineOf(inner, { ...style, ...more })
    spans.push(...found.spans)
    images.push(...found.images)
  }
  const htmlStyle: Style = {}
  for (const token of tokens ?? []) {
    switch (token.type) {
      case 'strong':
        nested(token.tokens, { bold: true })
        break
      case 'em':
        nested(token.tokens, { italic: true })
        break
      case 'del':
        nested(token.tokens, { strike: true })
        break
      case 'link':
        nested(token.tokens, linkTo((token as Tokens.Link).href))
        break
      case 'codespan':
        spans.push({ ...style, ...htmlStyle, mono: true, text: (token as Tokens.Codespan).text })
        break
      case 'image':
        images.push({
          source: (token as Tokens.Image).href,
          alt: decodeEntities((token as Tokens.Image).text),
        })
        break
      case 'br':
        spans.push({ ...style, text: '\n' })
        break
      case 'html':
        if (/^<br\s*\/?>/i.test(token.raw)) spans.push({ ...style, text: '\n' })
        else applyTag(token.raw, htmlStyle)
        break
      case 'escape':
        spans.push({ ...style, ...htmlStyle, text: (token as Tokens.Escape).text })
        break
      case 'checkbox':
        break
      default:
        if ('tokens' in token && token.tokens !== undefined) nested(token.tokens, htmlStyle)
        else spans.push({ ...style, ...htmlStyle, text: decodeEntities(textOf(token)) })
    }
  }
  return { spans, images }
}

/** Converts inline tokens to plain text on one line. */
export const plainText = (spans: Span[]): string =>
  spans
    .map((span) => span.text)
    .join('')
    .replace(/\s+/g, ' ')
    .trim()

const textOf = (token: Token): string =>
  'text' in token && typeof token.text === 'string' ? token.text : token.raw

/** Allows only some link schemes, because a document must not link to a file or a script. */
function linkTo(href: string): Style {
  return /^(?:https?:\/\/|mailto:|#)/i.test(href) && href.length <= 2000 ? { link: href } : {}
}

const tagStyles: Record<string, Style> = {
  b: { bold: true },
  strong: { bold: true },
  i: { italic: true },
  em: { italic: true },
  code: { mono: true },
  kbd: { mono: true },
  del: { strike: true },
  s: { strike: true },
}

/** Supports only basic HTML. Removes other tags but keeps their text. */
function applyTag(raw: string, style: Style): void {
  const [, closing, name] = /^<(\/?)([a-z]+)/i.exec(raw) ?? []
  const change = tagStyles[name?.toLowerCase() ?? '']
  for (const key of Object.keys(change ?? {}) as (keyof Style)[]) {
    if (closing === '/') delete style[key]
    else Object.assign(style, { [key]: true })
  }
}
