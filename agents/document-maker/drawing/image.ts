import { inflateSync } from 'node:zlib'
import type { Attachment } from '../document.ts'

/** Maximum number of decoded pixels, because a file of a few kilobytes can declare gigabytes. */
const maxPixels = 16_000_000

export type Image = { bytes: Uint8Array } | { problem: string }

/** Resolves the address of a Markdown image, a `data:` URI or an attached file's name. Fetches nothing. */
export function findImage(source: string, attachments: Attachment[]): Image {
  const found = source.startsWith('data:') ? fromDataUri(source) : attached(source, attachments)
  if (found === undefined) return { problem: 'not among the files' }
  const problem = problemOf(found)
  return problem === undefined ? { bytes: found } : { problem }
}

/** Returns the reason why the image cannot be used, or undefined if it can. */
export function problemOf(bytes: Uint8Array): string | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (buffer.subarray(0, 8).equals(pngSignature)) return problemOfPng(buffer)
  if (buffer.length > 2 && buffer.readUInt16BE(0) === 0xffd8) return problemOfJpeg(buffer)
  return 'neither PNG nor JPEG'
}

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

function fromDataUri(uri: string): Uint8Array | undefined {
  const match = /^data:image\/(?:png|jpe?g);base64,([A-Za-z0-9+/=\s%]+)$/i.exec(uri)
  return match === null ? undefined : Buffer.from((match[1] as string).replaceAll('%2B', '+'), 'base64')
}

function attached(source: string, attachments: Attachment[]): Uint8Array | undefined {
  const name = source.replace(/^\.\//, '')
  return attachments.find((file) => file.name === name || encodeURI(file.name) === name)?.bytes
}

const damaged = 'damaged'
const tooLarge = 'too large'
const channels: Record<number, number> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }

/** Inflates the chunks up to the size declared in the header. */
function problemOfPng(buffer: Buffer): string | undefined {
  if (buffer.length < 33 || buffer.toString('latin1', 12, 16) !== 'IHDR') return damaged
  const [width, height] = [buffer.readUInt32BE(16), buffer.readUInt32BE(20)]
  const [depth, color] = [buffer.readUInt8(24), buffer.readUInt8(25)]
  const perPixel = channels[color]
  if (width === 0 || height === 0 || perPixel === undefined || ![1, 2, 4, 8, 16].includes(depth))
    return damaged
  if (width * height > maxPixels) return tooLarge
  const parts: Buffer[] = []
  let palette = false
  let at = 8
  while (at + 12 <= buffer.length) {
    const length = buffer.readUInt32BE(at)
    const type = buffer.toString('latin1', at + 4, at + 8)
    if (at + 12 + length > buffer.length) return damaged
    if (type === 'IDAT') parts.push(buffer.subarray(at + 8, at + 8 + length))
    palette ||= type === 'PLTE'
    at += 12 + length
    if (type === 'IEND') break
  }
  if (color === 3 && !palette) return damaged
  const row = Math.ceil((width * perPixel * depth) / 8) + 1
  // An interlaced image has additional row headers.
  const most = row * height + 8 * (width + height) + 1024
  try {
    const pixels = inflateSync(Buffer.concat(parts), { maxOutputLength: most })
    return pixels.length < row * height - height ? damaged : undefined
  } catch {
    return damaged
  }
}

function problemOfJpeg(buffer: Buffer): string | undefined {
  let at = 2
  while (at + 9 < buffer.length) {
    if (buffer.readUInt8(at) !== 0xff) return damaged
    const marker = buffer.readUInt8(at + 1)
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) {
      const pixels = buffer.readUInt16BE(at + 5) * buffer.readUInt16BE(at + 7)
      if (pixels === 0 || ![1, 3, 4].includes(buffer.readUInt8(at + 9))) return damaged
      return pixels > maxPixels ? tooLarge : undefined
    }
    at += 2 + buffer.readUInt16BE(at + 2)
  }
  return damaged
}
