/** Escape sequences of terminals: CSI, OSC and those of two characters. */
const escapes = new RegExp(
  String.raw`\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[@-Z\\-_]`,
  'g',
)
/** Other control characters, and those that change the direction of a text. */
const invisible = /(?![\t\n\r])\p{Cc}|\p{Bidi_Control}|[\u{e0000}-\u{e007f}]/gu

/** Returns a text of a server without escape sequences, control characters and invisible tags. */
export function cleanText(text: string): string {
  return text.replace(escapes, '').replace(invisible, '')
}

/** Returns the text in one line of at most `max` characters. */
export function cleanLine(text: string, max: number): string {
  return cleanText(text.slice(0, max * 4))
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, max)
}
