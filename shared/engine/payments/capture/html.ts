/** Markup of ours; every text in it was escaped when it was put there. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | string | number | undefined | false | readonly Value[]

/** The only way to markup: what is filled in is text, in elements and in quoted attributes. */
export function html(pieces: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(pieces.map((piece, at) => (at === 0 ? piece : shown(values[at - 1]) + piece)).join(''))
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
/** Control characters but line breaks and tabs, and those that turn the direction of what stands around them. */
const unseen = /(?![\t\n\r])\p{Cc}|\p{Bidi_Control}/gu

function shown(value: Value): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(shown).join('')
  return String(value)
    .replace(unseen, '\u{fffd}')
    .replace(/[&<>"']/g, (sign) => entities[sign] ?? '')
}
