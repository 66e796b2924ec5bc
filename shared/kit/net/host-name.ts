import { domainToASCII } from 'node:url'

/**
 * A DNS name in one spelling: lower case, punycode, without the dot at the end that some write. Undefined for what is
 * none: empty or long labels, other characters, an end in digits (such names are read as IPv4 addresses).
 */
export function hostName(text: string): string | undefined {
  const name = domainToASCII(text.replace(/\.$/, '')).toLowerCase()
  const labels = name.split('.')
  if (name.length > 253 || !labels.every((label) => /^[a-z\d_-]{1,63}$/.test(label))) return undefined
  return /^(\d+|0x[\da-f]*)$/.test(labels.at(-1) ?? '') ? undefined : name
}

/**
 * Names that no public server has (RFC 6761, RFC 6762, RFC 8375, RFC 9476 and ICANN's `.internal`), and those under
 * which clouds answer with credentials. They are refused before anybody is asked for their address.
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

/** What a name of `hostName` is when it is not one of the public DNS. */
export function localName(name: string): 'cloud metadata' | 'local' | undefined {
  if (endsWithOne(name, metadataNames)) return 'cloud metadata'
  // A name without a dot is looked for in the search domains of this machine.
  return !name.includes('.') || endsWithOne(name, localEndings) ? 'local' : undefined
}

function endsWithOne(name: string, endings: string[]): boolean {
  return endings.some((ending) => name === ending || name.endsWith(`.${ending}`))
}
