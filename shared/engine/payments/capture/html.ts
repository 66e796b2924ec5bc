/** Trusted markup. `html` has escaped every value in it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | string | number | undefined | false | readonly Value[]

/** Builds markup. Values are escaped for element content and quoted attributes. */
export function html(pieces: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(pieces.map((piece, at) => (at === 0 ? piece : escaped(values[at - 1]) + piece)).join(''))
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
/** Control characters other than line breaks and tabs, and characters that change the text direction. */
const invisible = /(?![\t\n\r])\p{Cc}|\p{Bidi_Control}/gu

function escaped(value: Value): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(escaped).join('')
  return String(value)
    .replace(invisible, '\u{fffd}')
    .replace(/[&<>"']/g, (sign) => entities[sign] ?? '')
}
