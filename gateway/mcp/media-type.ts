/** The formats that models read inline, by their first bytes. The declared type of a file is not trusted. */
const signatures: readonly {
  mediaType: string
  at?: number
  bytes: string
  also?: { at: number; bytes: string }
}[] = [
  { mediaType: 'image/png', bytes: '\u0089PNG\r\n\u001A\n' },
  { mediaType: 'image/jpeg', bytes: '\u00FF\u00D8\u00FF' },
  { mediaType: 'image/gif', bytes: 'GIF87a' },
  { mediaType: 'image/gif', bytes: 'GIF89a' },
  { mediaType: 'image/webp', bytes: 'RIFF', also: { at: 8, bytes: 'WEBP' } },
  { mediaType: 'audio/wav', bytes: 'RIFF', also: { at: 8, bytes: 'WAVE' } },
  { mediaType: 'audio/mpeg', bytes: 'ID3' },
  { mediaType: 'audio/mpeg', bytes: '\u00FF\u00FB' },
  { mediaType: 'audio/mpeg', bytes: '\u00FF\u00F3' },
  { mediaType: 'audio/ogg', bytes: 'OggS' },
  { mediaType: 'audio/flac', bytes: 'fLaC' },
  { mediaType: 'audio/mp4', at: 4, bytes: 'ftypM4A' },
]

/** Returns the media type of an image or audio file, read from its first bytes; undefined for other content. */
export function sniffMediaType(base64: string): string | undefined {
  const head = Buffer.from(base64.slice(0, 32), 'base64').toString('latin1')
  return signatures.find(
    ({ at = 0, bytes, also }) =>
      head.startsWith(bytes, at) && (also === undefined || head.startsWith(also.bytes, also.at)),
  )?.mediaType
}

/** Whether a file of this type is text, so that its content may be read as UTF-8. */
export function isTextual(mediaType: string): boolean {
  return /^text\/|[/+](json|xml|yaml|x-yaml|javascript|toml|csv|markdown)$/.test(
    mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? '',
  )
}
