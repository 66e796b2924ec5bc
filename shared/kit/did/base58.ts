const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const digits = new Map(Array.from(alphabet, (letter, digit) => [letter.charCodeAt(0), digit]))
/** Digits that fit exactly into a number: 58^9 < 2^53. */
const chunkDigits = 9
const powers = Array.from({ length: chunkDigits + 1 }, (_, digit) => BigInt(58 ** digit))

/**
 * Decodes base58 text that encodes exactly this many bytes; otherwise returns undefined. Overlong texts are not
 * parsed. This runs for every signed request, and by processing nine digits at a time it takes a quarter of the time
 * that bs58 takes.
 */
export function readBase58(text: string, bytes: number): Uint8Array | undefined {
  if (text.length > Math.ceil(bytes * 1.37)) return undefined
  let value = 0n
  for (let from = 0; from < text.length; from += chunkDigits) {
    const to = Math.min(from + chunkDigits, text.length)
    let chunk = 0
    for (let at = from; at < to; at += 1) {
      const digit = digits.get(text.charCodeAt(at))
      if (digit === undefined) return undefined
      chunk = chunk * 58 + digit
    }
    value = value * (powers[to - from] ?? 1n) + BigInt(chunk)
  }
  const hex = value.toString(16).padStart(2 * bytes, '0')
  if (hex.length !== 2 * bytes) return undefined
  const decoded = Buffer.from(hex, 'hex')
  // Each leading zero byte is encoded as one leading 1.
  const zeros = decoded.findIndex((byte) => byte !== 0)
  const ones = text.length - text.replace(/^1+/, '').length
  return ones === (zeros === -1 ? bytes : zeros) ? decoded : undefined
}

/** Limbs of 58^5, because a limb times 2^16 fits into a number. */
const [limbDigits, limb] = [5, 58 ** 5]
const letterCodes = Uint8Array.from(alphabet, (letter) => letter.charCodeAt(0))
const one = letterCodes[0] ?? 0

/** Encodes bytes as base58. bs58 takes several times as long, and this runs for every signed part. */
export function writeBase58(bytes: Uint8Array): string {
  const limbs = limbsOf(bytes)
  const letters = Buffer.allocUnsafe(limbs.length * limbDigits)
  let at = letters.length
  for (let value of limbs)
    for (let digit = 0; digit < limbDigits; digit += 1) {
      at -= 1
      letters[at] = letterCodes[value % 58] ?? one
      value = (value / 58) | 0
    }
  while (at < letters.length && letters[at] === one) at += 1
  // Each leading zero byte is encoded as one leading 1.
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return '1'.repeat(zeros === -1 ? bytes.length : zeros) + letters.toString('latin1', at)
}

/** The number that the bytes encode, in base 58^5, least significant limb first. */
function limbsOf(bytes: Uint8Array): number[] {
  const limbs: number[] = []
  for (let from = 0; from < bytes.length; from += 2) {
    const isPair = from + 1 < bytes.length
    const radix = isPair ? 0x1_0000 : 0x100
    let carry = isPair ? (bytes[from] ?? 0) * 0x100 + (bytes[from + 1] ?? 0) : (bytes[from] ?? 0)
    for (let index = 0; index < limbs.length; index += 1) {
      const value = (limbs[index] ?? 0) * radix + carry
      carry = Math.floor(value / limb)
      limbs[index] = value - carry * limb
    }
    if (carry > 0) limbs.push(carry)
  }
  return limbs
}
