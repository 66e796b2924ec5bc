import { expect, test } from 'vitest'
import { sniffMediaType } from './media-signature.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')

test.each([
  ['image/png', '\u0089PNG\r\n\u001A\n'],
  ['image/webp', 'RIFF\u0010\u0000\u0000\u0000WEBPVP8 '],
  ['audio/wav', 'RIFF\u0010\u0000\u0000\u0000WAVEfmt '],
  ['image/bmp', 'BM\u0036\u0000\u0000\u0000\u0000\u0000\u0000\u0000'],
])('the first bytes of %s identify it', (mediaType, head) => {
  expect(sniffMediaType(bytes(head))).toBe(mediaType)
})

test.each(['BMW,sales\n1,2', 'xxxxxxxxWEBP', 'RIFF', ''])(
  'the text "%s" is neither image nor audio',
  (text) => {
    expect(sniffMediaType(bytes(text))).toBeUndefined()
  },
)
