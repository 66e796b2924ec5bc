interface Signature {
  mediaType: string
  at?: number
  bytes: string
  also?: { at: number; bytes: string }
}

const signatures: readonly Signature[] = [
  { mediaType: 'image/png', bytes: '\u0089PNG\r\n\u001A\n' },
  { mediaType: 'image/jpeg', bytes: '\u00FF\u00D8\u00FF' },
  { mediaType: 'image/gif', bytes: 'GIF87a' },
  { mediaType: 'image/gif', bytes: 'GIF89a' },
  { mediaType: 'image/webp', bytes: 'RIFF', also: { at: 8, bytes: 'WEBP' } },
  // Texts may begin with the two letters. The reserved bytes of a bitmap are zero.
  { mediaType: 'image/bmp', bytes: 'BM', also: { at: 6, bytes: '\u0000\u0000\u0000\u0000' } },
  { mediaType: 'image/avif', at: 4, bytes: 'ftypavif' },
  { mediaType: 'audio/wav', bytes: 'RIFF', also: { at: 8, bytes: 'WAVE' } },
  { mediaType: 'audio/mpeg', bytes: 'ID3' },
  { mediaType: 'audio/mpeg', bytes: '\u00FF\u00FB' },
  { mediaType: 'audio/mpeg', bytes: '\u00FF\u00F3' },
  { mediaType: 'audio/ogg', bytes: 'OggS' },
  { mediaType: 'audio/flac', bytes: 'fLaC' },
  { mediaType: 'audio/mp4', at: 4, bytes: 'ftypM4A' },
]

/** The number of bytes that `sniffMediaType` reads. */
export const signatureMaxBytes = 16

/** Returns the media type of an image or audio file by its first bytes; undefined for other content. */
export function sniffMediaType(content: Uint8Array): string | undefined {
  const head = Buffer.from(content.subarray(0, signatureMaxBytes)).toString('latin1')
  return signatures.find(
    ({ at = 0, bytes, also }) =>
      head.startsWith(bytes, at) && (also === undefined || head.startsWith(also.bytes, also.at)),
  )?.mediaType
}
