import { lexer } from 'marked'
import { html } from './html.js'
import { Text } from './text.js'

const charactersMax = 100_000
/**
 * Reading takes time that grows with the square of the length of a block, and rendering needs stack for each level. A text over
 * one of these limits is shown as it is.
 */
const [blockMaxChars, depthMax] = [10_000, 50]

/**
 * Markdown from outside, as elements. `marked` only splits the text; markup in it stays text, images become links, and links lead to
 * http, https and mailto addresses only.
 *
 * @param {{ text: string }} props
 */
export function Markdown({ text }) {
  const shown = text.slice(0, charactersMax)
  return html`<div class="prose">
    ${blocks(tokensOf(shown))}
    ${text.length > charactersMax && html`<p class="faint">The rest of this text is not shown. Copy it to read all.</p>`}
  </div>`
}

/** @typedef {import('marked').Token & { tokens?: import('marked').Token[], text?: string }} Token */

/**
 * @param {string} text
 * @returns {Token[]}
 */
export function tokensOf(text) {
  const plain = [{ type: 'code', raw: text, text }]
  if (text.split(/\n[ \t]{0,20}\n/).some((block) => block.length > blockMaxChars)) return plain
  try {
    const tokens = lexer(text, { gfm: true })
    return isDeeper(tokens, depthMax) ? plain : withLevels(tokens)
  } catch {
    return plain
  }
}

/**
 * @param {any[]} tokens
 * @param {number} levels
 * @returns {boolean}
 */
function isDeeper(tokens, levels) {
  return levels === 0 || tokens.some((token) => isDeeper(token.tokens ?? token.items ?? [], levels - 1))
}

/**
 * Adds the level of each heading in the page: below the heading of the screen's part, and without gaps.
 *
 * @param {any[]} tokens
 * @returns {Token[]}
 */
function withLevels(tokens) {
  let before = 2
  return tokens.map((token) => {
    if (token.type !== 'heading') return token
    before = Math.min(6, token.depth + 2, before + 1)
    return { ...token, level: before }
  })
}

/** @param {Token[]} tokens */
function blocks(tokens) {
  return tokens.map((token, index) => html`<${Block} key=${index} token=${token} />`)
}

/** @param {{ token: any }} props */
function Block({ token }) {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading':
      return html`<p class="strong" role=${token.level && 'heading'} aria-level=${token.level}>${inline(token.tokens)}</p>`
    case 'paragraph':
      return html`<p>${inline(token.tokens)}</p>`
    case 'code':
      return html`<pre class="code" tabindex="0"><${Text} value=${token.text} none="" /></pre>`
    case 'blockquote':
      return html`<blockquote class="stack-2">${blocks(token.tokens)}</blockquote>`
    case 'hr':
      return html`<hr />`
    case 'list': {
      const items = token.items.map(
        (/** @type {any} */ item, /** @type {number} */ index) =>
          html`<li key=${index}>${blocks(item.tokens)}</li>`,
      )
      return token.ordered
        ? html`<ol start=${Number(token.start) || 1}>${items}</ol>`
        : html`<ul>${items}</ul>`
    }
    case 'table':
      return html`<${MarkdownTable} token=${token} />`
    default:
      return token.tokens
        ? html`<span>${inline(token.tokens)}</span>`
        : html`<${Text} value=${token.text ?? token.raw} none="" />`
  }
}

/** @param {{ token: any }} props */
function MarkdownTable({ token }) {
  const cells = (/** @type {any[]} */ row, /** @type {string} */ tag) =>
    row.map((cell, index) => html`<${tag} key=${index}>${inline(cell.tokens)}<//>`)
  return html`<div class="table-wrap" tabindex="0" role="group" aria-label="A table of the text">
    <table><thead><tr>${cells(token.header, 'th')}</tr></thead>
    <tbody>${token.rows.map((/** @type {any[]} */ row, /** @type {number} */ index) => html`<tr key=${index}>${cells(row, 'td')}</tr>`)}</tbody></table>
  </div>`
}

/** @param {Token[] | undefined} tokens */
function inline(tokens = []) {
  return tokens.map((token, index) => html`<${Inline} key=${index} token=${token} />`)
}

/** @param {{ token: any }} props */
function Inline({ token }) {
  switch (token.type) {
    case 'strong':
      return html`<strong>${inline(token.tokens)}</strong>`
    case 'em':
      return html`<em>${inline(token.tokens)}</em>`
    case 'del':
      return html`<del>${inline(token.tokens)}</del>`
    case 'codespan':
      return html`<code><${Text} value=${token.text} none="" /></code>`
    case 'br':
      return html`<br />`
    case 'link':
      return html`<${OutsideLink} href=${token.href}>${inline(token.tokens)}<//>`
    case 'image':
      return html`<${OutsideLink} href=${token.href}>Image: <${Text} value=${token.text} none=${token.href} /><//>`
    default:
      return token.tokens ? inline(token.tokens) : html`<${Text} value=${unescaped(token)} none="" />`
  }
}

/**
 * A link to another site: opened without a reference to the console, and only for addresses of known kinds.
 *
 * @param {{ href: string, children?: import('preact').ComponentChildren }} props
 */
export function OutsideLink({ href, children }) {
  if (!/^(https?:|mailto:)/i.test(href)) return html`<span title=${href}>${children}</span>`
  return html`<a href=${href} target="_blank" rel="noopener noreferrer nofollow" title=${href}>${children}</a>`
}

/** @param {{ type: string, text?: string, raw: string }} token */
function unescaped(token) {
  return token.type === 'html' ? token.raw : (token.text ?? token.raw)
}
