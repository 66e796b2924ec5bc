import net from 'node:net'

/** An IP address as a number, so that prefixes can be compared. */
export interface AddressValue {
  family: 4 | 6
  value: bigint
}

/** A CIDR block: the addresses with a common prefix. */
export interface AddressBlock extends AddressValue {
  prefix: number
}

/** Parses an address. Returns undefined if it is malformed or has a zone (`fe80::1%eth0`). */
export function addressValue(text: string): AddressValue | undefined {
  if (net.isIPv4(text)) return { family: 4, value: ipv4(text) }
  if (net.isIPv6(text) && !text.includes('%')) return { family: 6, value: ipv6(text) }
  return undefined
}

/** Parses a CIDR block such as `10.0.0.0/8`, or a single address. Returns undefined for anything else. */
export function addressBlock(text: string): AddressBlock | undefined {
  const [start = '', length, ...rest] = text.split('/')
  const address = addressValue(start)
  if (address === undefined || rest.length > 0) return undefined
  const bits = bitsOf(address.family)
  if (length === undefined) return { ...address, prefix: bits }
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > bits) return undefined
  return { ...address, prefix: Number(length) }
}

export function isInBlock({ family, value }: AddressValue, block: AddressBlock): boolean {
  const shift = BigInt(bitsOf(family) - block.prefix)
  return family === block.family && value >> shift === block.value >> shift
}

const mapped = { family: 6, value: 0xffff_0000_0000n, prefix: 96 } as const

/** Converts an IPv4-mapped address (`::ffff:192.0.2.1`) to IPv4, because both reach the same host. */
export function withoutMapping(address: AddressValue): AddressValue {
  return isInBlock(address, mapped) ? lowestIpv4(address) : address
}

/** Returns the IPv4 address in the last 32 bits of an IPv6 address. */
export function lowestIpv4({ value }: AddressValue): AddressValue {
  return { family: 4, value: value & 0xffff_ffffn }
}

function bitsOf(family: 4 | 6): number {
  return family === 4 ? 32 : 128
}

function ipv4(text: string): bigint {
  return text.split('.').reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
}

function ipv6(text: string): bigint {
  const [head = '', tail] = text.split('::')
  const before = groups(head)
  const after = tail === undefined ? [] : groups(tail)
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0n)
  return [...before, ...zeros, ...after].reduce((value, group) => (value << 16n) | group, 0n)
}

/** Returns the 16-bit groups; a dotted-decimal ending counts as two groups. */
function groups(text: string): bigint[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [BigInt(`0x${group}`)]
    const value = ipv4(group)
    return [value >> 16n, value & 0xffffn]
  })
}
