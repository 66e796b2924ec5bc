const ascii = (text: string) => [...Buffer.from(text, 'latin1')]

/** The first bytes of image formats: where they are, and what they are. */
const signatures: readonly { type: string; at: number; bytes: readonly number[] }[] = [
  { type: 'image/png', at: 0, bytes: ascii('\u0089PNG\r\n\u001A\n') },
  { type: 'image/jpeg', at: 0, bytes: [0xff, 0xd8, 0xff] },
  { type: 'image/gif', at: 0, bytes: ascii('GIF8') },
  { type: 'image/webp', at: 8, bytes: ascii('WEBP') },
  { type: 'image/bmp', at: 0, bytes: ascii('BM') },
  { type: 'image/avif', at: 4, bytes: ascii('ftypavif') },
]

/** Returns the type of an image by its first bytes; undefined for anything else. */
export function imageTypeOf(content: Uint8Array): string | undefined {
  return signatures.find(({ at, bytes }) => bytes.every((byte, index) => content[at + index] === byte))?.type
}

const typeOfExtension: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  txt: 'text/plain',
  md: 'text/markdown',
  html: 'text/html',
  json: 'application/json',
  xml: 'application/xml',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
}

/** Returns the type of a file by the extension of its name. */
export function typeOfName(name: string | undefined): string {
  const extension = /\.([a-z\d]+)$/i.exec(name ?? '')?.[1]?.toLowerCase() ?? ''
  return typeOfExtension[extension] ?? 'application/octet-stream'
}
