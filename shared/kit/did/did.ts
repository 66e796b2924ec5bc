import { createHash } from 'node:crypto'

/** `did:<method>:<author>:<name or kind>:<id>` (spec/did.md#did). */
export const didMethod = 'parley'

/** @throws Error if a part contains characters that are not allowed in a DID */
export function makeDid(parts: { author: string; name: string; publicKey: Uint8Array }): string {
  return `did:${didMethod}:${didPart(parts.author, 'author')}:${didPart(parts.name, 'name')}:${keyId(parts.publicKey)}`
}

const didMaxChars = 512

/** Whether the text follows "DID Syntax" in W3C DID Core, without path, query and fragment. */
export function isDid(text: string): boolean {
  if (text.length > didMaxChars) return false
  return /^did:[a-z0-9]+:(?:[\w.:-]|%[\dA-Fa-f]{2})*(?:[\w.-]|%[\dA-Fa-f]{2})$/.test(text)
}

/** Returns a UUID made of the first 16 bytes of the first public key's SHA-256. */
export function keyId(publicKey: Uint8Array): string {
  const hex = createHash('sha256').update(publicKey).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    '-',
  )
}

/**
 * Converts a text to a part of a DID: lower case, ` `→`_`, `@`→`_at_`, `.`→`_`.
 * @throws Error if the result contains characters other than `[a-z0-9_-]`
 */
export function didPart(text: string, what: string): string {
  const part = text.toLowerCase().replaceAll(' ', '_').replaceAll('@', '_at_').replaceAll('.', '_')
  if (!/^[a-z0-9_-]{1,128}$/.test(part)) {
    throw new Error(`The ${what} of a DID must be 1 to 128 letters, digits, _ or -.`)
  }
  return part
}

/** Returns the last part of the DID. */
export function agentId(did: string): string {
  return did.slice(did.lastIndexOf(':') + 1)
}
