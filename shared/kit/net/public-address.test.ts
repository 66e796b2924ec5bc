import net from 'node:net'
import { expect, test } from 'vitest'
import { addressBlock, addressValue, isInBlock } from './address-block.ts'
import { isPublicAddress, verdict } from './public-address.ts'

const refused: [is: string, addresses: string[]][] = [
  ['unspecified', ['0.0.0.0', '0.1.2.3', '0.255.255.255', '::', '0:0:0:0:0:0:0:0', '::ffff:0.0.0.0']],
  [
    'private',
    ['10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  ],
  ['private', ['fc00::', 'fd12:3456:789a::1', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
  ['shared by carriers', ['100.64.0.0', '100.127.255.255']],
  [
    'loopback',
    ['127.0.0.1', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1'],
  ],
  ['loopback', ['64:ff9b::127.0.0.1', '64:ff9b::7f00:1', '0064:FF9B::7F00:0001']],
  [
    'link-local',
    ['169.254.0.1', '169.254.170.2', '169.254.0.23', 'fe80::1', 'febf:ffff::1', 'FE80::A9FE:A9FE'],
  ],
  [
    'cloud metadata',
    ['169.254.169.254', '100.100.100.200', '192.0.0.192', '168.63.129.16', '::ffff:a9fe:a9fe'],
  ],
  ['cloud metadata', ['fd00:ec2::254', 'fd20:ce::254', '64:ff9b::169.254.169.254']],
  [
    'protocol assignment',
    ['192.0.0.1', '192.0.0.9', '192.0.0.255', '2001:1::1', '2001:3::1', '2001:1ff:ffff::1'],
  ],
  ['documentation', ['192.0.2.1', '198.51.100.255', '203.0.113.0', '2001:db8::1', '3fff::1', '3fff:fff::1']],
  ['benchmarking', ['198.18.0.0', '198.19.255.255', '2001:2::1']],
  ['AS112 anycast', ['192.31.196.1', '192.175.48.6', '2620:4f:8000::6']],
  ['AMT anycast', ['192.52.193.1']],
  ['6to4 relay', ['192.88.99.1']],
  ['multicast', ['224.0.0.1', '239.255.255.255', '233.252.0.1', 'ff02::1', 'ff0e::1', 'ffff::']],
  ['reserved', ['240.0.0.1', '255.255.255.254', '4000::1', '1000::', '8000::1', '200::1', 'e000::1']],
  ['broadcast', ['255.255.255.255', '::ffff:255.255.255.255']],
  ['IPv4-compatible', ['::127.0.0.1', '::7f00:1', '::8.8.8.8', '::2']],
  ['IPv4-translated', ['::ffff:0:127.0.0.1', '::ffff:0:808:808']],
  ['local NAT64', ['64:ff9b:1::a00:1', '64:ff9b:1:ffff::8.8.8.8']],
  ['discard only', ['100::', '100::ffff:ffff:ffff:ffff']],
  ['dummy prefix', ['100:0:0:1::1']],
  ['Teredo tunnel', ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:0:7f00:1::']],
  ['ORCHID', ['2001:10::1', '2001:2f:ffff::1']],
  ['6to4 tunnel', ['2002:7f00:1::', '2002:a00:1::1', '2002:c0a8:101::1', '2002:a9fe:a9fe::']],
  ['segment routing', ['5f00::1', '5f00:ffff::']],
  ['site-local', ['fec0::1', 'feff::1']],
  [
    'not an address',
    ['', 'localhost', '127.1', '0x7f.0.0.1', '017700000001', '1.2.3.4 ', '8.8.8.8/32', '[2a00::1]'],
  ],
  [
    'not an address',
    ['fe80::1%eth0', '2a00:1450::1%1', '2606:4700:::1', '256.1.1.1', '1.2.3', '::ffff:1.2.3'],
  ],
]

test.each(refused.flatMap(([is, addresses]) => addresses.map((address) => ({ address, is }))))(
  '$address is not public: $is',
  ({ address, is }) => {
    expect(verdict(address)).toEqual({ public: false, is })
    expect(isPublicAddress(address)).toBe(false)
  },
)

const outside = `
  1.1.1.1 8.8.8.8 9.9.9.9 93.184.216.34 140.82.121.4 151.101.1.69 104.16.132.229`
const besideABlock = `
  1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15
  168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0
  192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0
  223.255.255.255 2606:4700:4700::1111 2001:4860:4860::8888 2620:fe::fe 2a00:1450:4001:80b::200e 2a04:4e42::
  2001:200::1 2001:db7:ffff::1 2001:db9:: 2003::1 2400:cb00::1 3ffe:ffff::1 2000::1 ::ffff:8.8.8.8
  ::ffff:808:808 64:ff9b::8.8.8.8 64:ff9b::101:101`

test.each([...outside.trim().split(/\s+/), ...besideABlock.trim().split(/\s+/)])(
  '%s is public',
  (address) => {
    expect(verdict(address)).toEqual({ public: true })
  },
)

test('block membership agrees with Node’s BlockList for every prefix at both ends', () => {
  const differing: string[] = []
  for (const seed of [
    '203.0.113.77',
    '255.255.255.255',
    '0.0.0.0',
    '2001:db8:aaaa:5555::ffff',
    'ffff::',
    '::',
  ]) {
    const family = net.isIPv4(seed) ? 'ipv4' : 'ipv6'
    for (let prefix = 0; prefix <= (family === 'ipv4' ? 32 : 128); prefix++) {
      const list = new net.BlockList()
      list.addSubnet(seed, prefix, family)
      const block = addressBlock(`${seed}/${prefix}`)
      if (block === undefined) throw new Error('no block')
      for (const probe of probes(seed, prefix)) {
        const address = addressValue(probe)
        if (address === undefined || isInBlock(address, block) !== list.check(probe, family))
          differing.push(`${probe} in ${seed}/${prefix}`)
      }
    }
  }
  expect(differing).toEqual([])
})

/** Returns the address with one bit flipped: the last bit of the prefix, the first bit after it, or the last bit. */
function probes(address: string, prefix: number): string[] {
  const value = addressValue(address)
  if (value === undefined) return []
  const bits = value.family === 4 ? 32 : 128
  return [prefix - 1, prefix, bits - 1]
    .filter((bit) => bit >= 0 && bit < bits)
    .map((bit) => value.value ^ (1n << BigInt(bits - 1 - bit)))
    .map((flipped) => textOf(flipped, value.family))
}

function textOf(value: bigint, family: 4 | 6): string {
  const [count, width] = family === 4 ? [4, 8n] : [8, 16n]
  const groups = Array.from(
    { length: count },
    (_, i) => (value >> (width * BigInt(count - 1 - i))) & ((1n << width) - 1n),
  )
  return family === 4 ? groups.join('.') : groups.map((group) => group.toString(16)).join(':')
}

test.each([
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10.0.0.0/',
  '10.0.0.0/08',
  '10.0.0.0/8/8',
  '::/129',
  '10/8',
  'a/8',
  '/8',
  '',
])('"%s" is not a block', (text) => {
  expect(addressBlock(text)).toBeUndefined()
})
