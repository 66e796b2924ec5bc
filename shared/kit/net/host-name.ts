import { domainToASCII } from 'node:url'

/**
 * Normalizes a DNS name to lower case and punycode without a trailing dot. Returns undefined if the name is invalid
 * because of empty or long labels, other characters, or a numeric last label (which URL parsers read as an IPv4
 * address).
 */
export function hostName(text: string): string | undefined {
  const name = domainToASCII(text.replace(/\.$/, '')).toLowerCase()
  const labels = name.split('.')
  if (name.length > 253 || !labels.every((label) => /^[a-z\d_-]{1,63}$/.test(label))) return undefined
  return /^(\d+|0x[\da-f]*)$/.test(labels.at(-1) ?? '') ? undefined : name
}

/**
 * Names reserved for local use (RFC 6761, RFC 6762, RFC 8375, RFC 9476 and ICANN's `.internal`), and names of cloud
 * metadata services. They are rejected without a lookup.
 */
const localEndings = ['localhost', 'localdomain', 'local', 'internal', 'home.arpa', 'alt', 'onion']
const metadataNames = [
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'instance-data.ec2.internal',
  'metadata.tencentyun.com',
  'metadata.packet.net',
  'metadata.platformequinix.com',
]

/** Classifies a normalized name. Returns undefined for names in the public DNS. */
export function localName(name: string): 'cloud metadata' | 'local' | undefined {
  if (endsWithOne(name, metadataNames)) return 'cloud metadata'
  // Names without a dot are resolved with the search domains of this machine.
  return !name.includes('.') || endsWithOne(name, localEndings) ? 'local' : undefined
}

function endsWithOne(name: string, endings: string[]): boolean {
  return endings.some((ending) => name === ending || name.endsWith(`.${ending}`))
}
