import { crc32, deflateSync } from 'node:zlib'

/** Creates a single-colour PNG with transparency. `claims` overrides the size in its header. */
export function png(width: number, height: number, claims: { width?: number; height?: number } = {}): Buffer {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(claims.width ?? width, 0)
  head.writeUInt32BE(claims.height ?? height, 4)
  head.set([8, 6, 0, 0, 0], 8)
  const row = Buffer.concat([Buffer.of(0), Buffer.alloc(width * 4, 0x80)])
  const pixels = Buffer.concat(Array.from({ length: height }, () => row))
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(pixels)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, content: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  sum.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, sum])
}
