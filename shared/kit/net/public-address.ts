import { type AddressBlock, addressBlock, addressValue, isInBlock, lowestIpv4 } from './address-block.ts'

/** Whether an address is public, and if not, its kind. */
export type Verdict = { public: true } | { public: false; is: string }

/**
 * IANA's special-purpose address registries (IPv4 and IPv6, RFC 6890), and cloud metadata addresses. The first
 * matching row applies. Some globally reachable blocks are included because they contain no ordinary servers: anycast
 * services in the local network (AS112, AMT, 6to4 relays) and protocol assignments.
 */
const notPublic: [block: string, is: string][] = [
  ['169.254.169.254', 'cloud metadata'],
  ['100.100.100.200', 'cloud metadata'],
  ['192.0.0.192', 'cloud metadata'],
  ['168.63.129.16', 'cloud metadata'],
  ['0.0.0.0/8', 'unspecified'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'shared by carriers'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'protocol assignment'],
  ['192.0.2.0/24', 'documentation'],
  ['192.31.196.0/24', 'AS112 anycast'],
  ['192.52.193.0/24', 'AMT anycast'],
  ['192.88.99.0/24', '6to4 relay'],
  ['192.168.0.0/16', 'private'],
  ['192.175.48.0/24', 'AS112 anycast'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['255.255.255.255', 'broadcast'],
  ['240.0.0.0/4', 'reserved'],

  ['fd00:ec2::254', 'cloud metadata'],
  ['fd20:ce::254', 'cloud metadata'],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['::/96', 'IPv4-compatible'],
  ['::ffff:0:0:0/96', 'IPv4-translated'],
  ['64:ff9b:1::/48', 'local NAT64'],
  ['100::/64', 'discard only'],
  ['100:0:0:1::/64', 'dummy prefix'],
  ['2001::/32', 'Teredo tunnel'],
  ['2001:2::/48', 'benchmarking'],
  ['2001:10::/28', 'ORCHID'],
  ['2001:20::/28', 'ORCHID'],
  ['2001::/23', 'protocol assignment'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4 tunnel'],
  ['2620:4f:8000::/48', 'AS112 anycast'],
  ['3fff::/20', 'documentation'],
  ['5f00::/16', 'segment routing'],
  ['fc00::/7', 'private'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'site-local'],
  ['ff00::/8', 'multicast'],
]

/** Mapped (RFC 4291) and NAT64 (RFC 6052) addresses are classified by the IPv4 address that they embed. */
const embedsIpv4 = ['::ffff:0:0/96', '64:ff9b::/96'].map(block)
/** The only IPv6 block that is assigned for public use; the rest is reserved. */
const globalUnicast = block('2000::/3')
const rules = notPublic.map(([text, is]) => ({ ...block(text), is }))

/** @param text an IPv4 or IPv6 address; other strings and addresses with a zone are not public */
export function verdict(text: string): Verdict {
  const value = addressValue(text)
  if (value === undefined) return { public: false, is: 'not an address' }
  const address = embedsIpv4.some((one) => isInBlock(value, one)) ? lowestIpv4(value) : value
  const rule = rules.find((one) => isInBlock(address, one))
  if (rule !== undefined) return { public: false, is: rule.is }
  if (address.family === 6 && !isInBlock(address, globalUnicast)) return { public: false, is: 'reserved' }
  return { public: true }
}

export function isPublicAddress(text: string): boolean {
  return verdict(text).public
}

function block(text: string): AddressBlock {
  const parsed = addressBlock(text)
  if (parsed === undefined) throw new Error(`${text} is not an address block`)
  return parsed
}
