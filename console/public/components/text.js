import { CopyButton } from './copy-button.js'
import { html } from './html.js'

/**
 * Control characters (except line ends and tabs), bidirectional controls and other characters that cannot be seen. They can make a
 * text look like another one, so they are shown as marks. Emoji and scripts that need joiners and selectors keep them.
 */
const invisible = () =>
  (invisiblePattern ??=
    /(?!\ufe0e|\ufe0f|[\t\n\r])(?!(?<=[^\p{ASCII}])[\u200c\u200d])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu)
/**
 * Created when a text needs it, because its classes take 10 ms.
 *
 * @type {RegExp | undefined}
 */
let invisiblePattern
/** Most texts have no such characters and are recognized quickly. */
const plain = /^[\t\n\r\x20-\x7e]*$/

/**
 * A text from outside. It is isolated from the direction of its surroundings, and characters that cannot be seen are made visible.
 *
 * @param {{ value: string | null | undefined, none?: string, max?: number }} props
 */
export function Text({ value, none = '–', max = 20_000 }) {
  if (value === null || value === undefined || value === '') return html`<span class="faint">${none}</span>`
  const shown = value.length > max ? `${value.slice(0, max)}…` : value
  return html`<bdi>${marked(shown)}</bdi>`
}

/**
 * The text with a mark such as `U+202E` for each character that cannot be seen.
 *
 * @param {string} text
 * @returns {(string | import('preact').VNode)[]}
 */
function marked(text) {
  if (plain.test(text)) return [text]
  const pieces = []
  let from = 0
  for (const match of text.matchAll(invisible())) {
    if (match.index > from) pieces.push(text.slice(from, match.index))
    pieces.push(
      html`<span class="control-mark" title="An invisible character of the text">${nameOf(match[0])}</span>`,
    )
    from = match.index + match[0].length
  }
  if (from < text.length || pieces.length === 0) pieces.push(text.slice(from))
  return pieces
}

/**
 * The same for places that take no elements, such as titles and options.
 *
 * @param {string} text
 */
export function plainText(text) {
  if (plain.test(text)) return text
  return text.replace(invisible(), (character) => `[${nameOf(character)}]`)
}

/** @param {string} character */
function nameOf(character) {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * A number with separators. Small numbers need no format, whose creation takes 10 ms.
 *
 * @param {number} count
 */
export const countText = (count) => (count < 1000 ? String(count) : count.toLocaleString('en'))

/**
 * An identifier. Long ones are shortened in the middle, and the button copies the whole.
 *
 * @param {{ value: string | null | undefined, length?: number, copies?: boolean, href?: string, label?: string }} props
 */
export function Id({ value, length = 12, copies = false, href, label = 'identifier' }) {
  if (value === null || value === undefined) return html`<span class="faint">–</span>`
  const text = plainText(shortened(value, length))
  const id = html`<bdi class="mono nowrap" title=${plainText(value)}>${text}</bdi>`
  const linked = href === undefined ? id : html`<a href=${href}>${id}</a>`
  return copies
    ? html`<span class="with-copy">${linked} <${CopyButton} text=${value} label=${`Copy the ${label}`} /></span>`
    : linked
}

/**
 * @param {string} value
 * @param {number} length
 */
export function shortened(value, length) {
  if (value.length <= length + 1) return value
  const end = Math.max(3, Math.floor(length / 3))
  return `${value.slice(0, length - end)}…${value.slice(-end)}`
}
