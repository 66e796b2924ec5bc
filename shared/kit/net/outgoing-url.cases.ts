/** URLs that must be rejected, and URLs that must be accepted. */

const privateAddresses = words(`
  127.0.0.1 127.255.255.254 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.254 192.168.1.1 169.254.0.1 169.254.169.254
  169.254.170.2 100.64.0.1 100.100.100.200 0.0.0.0 0.0.0.1 192.0.2.1 198.51.100.7 203.0.113.9 198.18.0.1 192.0.0.192
  192.88.99.1 168.63.129.16 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255`)
const publicAddresses = words(
  '8.8.8.8 1.1.1.1 93.184.216.34 172.32.0.1 100.128.0.1 192.169.0.1 223.255.255.254',
)

/** All spellings of an IPv4 address that the URL standard accepts. */
function spellings(address: string): string[] {
  const bytes = address.split('.').map(Number)
  const [a = 0, b = 0, c = 0, d = 0] = bytes
  const whole = ((a * 256 + b) * 256 + c) * 256 + d
  const last3 = (b * 256 + c) * 256 + d
  const last2 = c * 256 + d
  const hex = (value: number) => `0x${value.toString(16)}`
  const octal = (value: number) => `0${value.toString(8)}`
  return [
    address,
    `${address}.`,
    String(whole),
    `${whole}.`,
    hex(whole),
    hex(whole).toUpperCase(),
    `0x0000${whole.toString(16)}`,
    octal(whole),
    `000${octal(whole)}`,
    `${a}.${last3}`,
    `${hex(a)}.${last3}`,
    `${octal(a)}.${hex(last3)}`,
    `${a}.${b}.${last2}`,
    `${octal(a)}.${b}.${hex(last2)}`,
    bytes.map(hex).join('.'),
    bytes.map(octal).join('.'),
    bytes.map((byte, i) => (i % 2 === 0 ? hex(byte) : octal(byte))).join('.'),
    bytes.map((byte) => `00000${octal(byte)}`).join('.'),
    wide(address),
    wide(String(whole)),
    digits(address, '⁰¹²³⁴⁵⁶⁷⁸⁹'),
    digits(address, '₀₁₂₃₄₅₆₇₈₉'),
    digits(address, '𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗'),
    address.replaceAll('.', '%E3%80%82'),
    `${address}%E3%80%82`,
    `\ufeff${address}`,
    address.replaceAll('.', '。'),
    address.replaceAll('.', '．'),
    address.replaceAll('.', '｡'),
    address.replaceAll('.', '%2e'),
    Array.from(address, (char) => `%${char.charCodeAt(0).toString(16)}`).join(''),
    address.replaceAll('.', '\u00ad.'),
    address.replaceAll('.', '\u200b.'),
    Array.from(address, (char) =>
      char >= '1' && char <= '9' ? String.fromCodePoint(0x245f + Number(char)) : char,
    ).join(''),
  ]
}

function wide(text: string): string {
  return Array.from(text, (char) =>
    /\d/.test(char) ? String.fromCodePoint(0xff10 + Number(char)) : char,
  ).join('')
}

function digits(text: string, ten: string): string {
  return text.replaceAll(/\d/g, (digit) => Array.from(ten)[Number(digit)] ?? '')
}

/** IPv6 addresses that embed this IPv4 address. */
function embedded(address: string): { sameVerdict: string[]; neverPublic: string[] } {
  const bytes = address.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0'))
  const high = `${bytes[0]}${bytes[1]}`
  const low = `${bytes[2]}${bytes[3]}`
  const flipped = [high, low].map((group) => (Number.parseInt(group, 16) ^ 0xffff).toString(16)).join(':')
  return {
    sameVerdict: [
      `[::ffff:${address}]`,
      `[::ffff:${high}:${low}]`,
      `[::FFFF:${high.toUpperCase()}:${low}]`,
      `[0:0:0:0:0:ffff:${high}:${low}]`,
      `[0000:0000:0000:0000:0000:ffff:${address}]`,
      `[64:ff9b::${address}]`,
      `[64:ff9b::${high}:${low}]`,
      `[0064:ff9b:0:0:0:0:${high}:${low}]`,
    ],
    neverPublic: [
      `[::${address}]`,
      `[::ffff:0:${address}]`,
      `[64:ff9b:1::${address}]`,
      `[2002:${high}:${low}::]`,
      `[2002:${high}:${low}::1]`,
      `[2001:0:${high}:${low}::1]`,
      `[2001:0:4136:e378:8000:63bf:${flipped}]`,
    ],
  }
}

const privateIpv6 = words(`
  :: ::1 0:0:0:0:0:0:0:1 0000:0000:0000:0000:0000:0000:0000:0001 ::0001 0::1 ::0:1 fe80::1 febf::1 FE80::A9FE:A9FE
  fec0::1 fc00::1 fd00::1 fd00:ec2::254 fd20:ce::254 ff02::1 ff05::1:3 2001:db8::1 2001:0db8:0000::1 3fff::1 100::1
  2001::1 2001:20::1 5f00::1 2620:4f:8000::1 4000::1 64:ff9b:1::1 2001:2::1`)
const publicIpv6 = words(
  '2606:4700:4700::1111 2001:4860:4860::8888 2a00:1450:4001:80b::200e 2620:fe::9 2400:CB00::1',
)

const localNames = [
  ...words(`
    localhost LOCALHOST LocalHost. a.localhost a.b.localhost. localhost.localdomain ip6-localhost router redis intranet
    kubernetes metadata printer.local a.LOCAL db.internal nas.home.arpa metadata.google.internal metadata.goog
    METADATA.google.internal. metadata.azure.internal instance-data.ec2.internal metadata.tencentyun.com
    metadata.packet.net x.metadata.packet.net metadata.platformequinix.com kubernetes.default.svc.cluster.local
    abc.onion name.alt host.docker.internal x.local。 ⓛⓞⓒⓐⓛⓗⓞⓢⓣ ｌｏｃａｌｈｏｓｔ %6c%6f%63%61%6c%68%6f%73%74 loc%61lhost metadata。google。internal
    ℒocalhost 𝓁ocalhost localhoſt`),
  'lo\u00adcalhost',
  'local\u200bhost',
]

const unreadable = [
  ...words(`
    example.org //example.org/ /hook example.org:80/hook http http: http:/ http:// http:/// http:///example.org/
    http:example.org http:/example.org http:////example.org http://?a http://#a http://:80/ http://[]/ http://[::1
    http://::1/ http://[::1]x/ http://[1.2.3.4]/ http://[fe80::1%25eth0]/ http://[fe80::1%eth0]/ http://[::g]/
    http://[2606:4700::1111%251]/ http://[1:2:3:4:5:6:7:8:9]/ http://[::1]:x/ http://256.256.256.256/
    http://1.2.3.4.5/ http://1.2.3.256/ http://4294967296/ http://0x100000000/ http://09.1.1.1/ http://0xg.1.1.1/
    http://127.0.0.1../ http://foo.127.1/ http://a.0x1/ http://example..org/ http://.example.org/ http://example.org../
    http://exa%20mple.org/ http://exa%00mple.org/ http://exa%2fmple.org/ http://exa<mple.org/ http://exa^mple.org/
    http://exa|mple.org/ http://exam!ple.org/ http://exa'mple.org/ http://exa*mple.org/ http://exa,mple.org/
    http://127.0.0.1︒/ http://127.0.0.1／.example.org/ http://127.0.0.1：80/ http://127.0.0.1＃.example.org/
    http://127.0.0.1？.example.org/ http://127.0.0.1℀.example.org/ http://example.org＠127.0.0.1/ http:／／127.0.0.1/
    http://[::ffff:127.1]/ http://[v1.fe80::a]/ http://[::1]%2f/ http://localhost%00.example.org/
    http://localhost%23.example.org/ http://⒈27.0.0.1/ http://(a).org/ http://％４１.com/ file:///etc/passwd data:text/plain,hi javascript:alert(1) mailto:a@example.org
    unix:/run/docker.sock view-source:http://example.org/ http+unix://%2Frun%2Fdocker.sock/ blob:http://example.org/1
    about:blank`),
  ...words('ftp file gopher ws wss data javascript blob about ldap dict sftp tftp jar httpx').map(
    (scheme) => `${scheme}://example.org/`,
  ),
  '',
  ' ',
  ' http://example.org/',
  'http://example.org/ ',
  'http://exa mple.org/',
  'http://exa\tmple.org/',
  'http://exa\nmple.org/',
  'http://example.org\r\nX: y/',
  'http://example.org/\u0000',
  'ht\ntp://example.org/',
  'http://exa\u0000mple.org/',
  'http://example.org/a\u2028b',
  'http://exa\ufffdmple.org/',
  'http://\u00ad/',
  'http:\\\\example.org\\',
  'http://example.org\\@127.0.0.1/',
  'http://example.org\\.evil.org/',
  `http://${'a'.repeat(64)}.org/`,
  `http://${'a.'.repeat(130)}org/`,
  `http://${'a'.repeat(10_000)}.org/`,
  `http://example.org/${'a'.repeat(10_000)}`,
  `http://example.org/?${'é'.repeat(3000)}`,
  'h'.repeat(10_000),
]

const withCredentials = words(`
  a:b@example.org a@example.org @example.org :@example.org :b@example.org a:b:c@example.org example.org:80@127.0.0.1
  127.0.0.1@example.org a%40b@example.org example.org@8.8.8.8 @@example.org example.org&@8.8.8.8#@example.org`).map(
  (authority) => `http://${authority}/`,
)

const withBadPorts = [...words('0 00 65536 70000 99999 4294967376 -1 +80 8o 80a ８０ 0x50 80:80'), ' 80'].map(
  (port) => `http://example.org:${port}/`,
)

/** URLs that must be rejected without a lookup. */
export const refusedUrls: string[] = [
  ...privateAddresses.flatMap((address) => {
    const { sameVerdict, neverPublic } = embedded(address)
    const hosts = [...spellings(address), ...sameVerdict, ...neverPublic]
    return hosts.flatMap((host) => [`http://${host}/hook`, `HTTPS://${host}:8443?a=b#c`])
  }),
  ...publicAddresses.flatMap((address) => embedded(address).neverPublic.map((host) => `http://${host}/`)),
  ...privateIpv6.flatMap((address) => [`http://[${address}]/`, `https://[${address}]:8443/hook`]),
  ...localNames.flatMap((name) => [`http://${name}/`, `https://${name}:8443/hook`]),
  ...unreadable,
  ...withCredentials,
  ...withBadPorts,
]

const publicNames = [
  ...words(`
    example.org EXAMPLE.org example.org. hooks.example.co.uk a.b.c.d.example.net 127.0.0.1.nip.io xn--bcher-kva.example
    bücher.example 例え.jp пример.рф ＥＸＡＭＰＬＥ.org a_b.example.org mañana.com localhost.example.org local.example.org
    internal.org mylocal.com notlocalhost.net 0x.org 1.example.org metadata.example.org 1e100.net 10.org -a-.example.org
    8-8-8-8.example.org a--b.example.org`),
  `${'a'.repeat(63)}.org`,
]

/** URLs that must be accepted before the lookup. */
export const acceptedUrls: string[] = [
  ...publicAddresses.flatMap((address) => {
    const hosts = [...spellings(address), ...embedded(address).sameVerdict]
    return hosts.flatMap((host) => [`http://${host}/hook`, `https://${host}:8443/?a=b`])
  }),
  ...publicIpv6.flatMap((address) => [`http://[${address}]/`, `https://[${address}]:65535/hook`]),
  ...publicNames.flatMap((name) => [
    `http://${name}/`,
    `https://${name}/hook`,
    `https://${name}:8443/a/b?c=d#e`,
  ]),
  ...[1, 80, 443, 8080, 65535].map((port) => `http://example.org:${port}/`),
  ...words(`
    http://example.org HTTP://example.org https://example.org?x https://example.org#x http://example.org:
    http://example.org/a@b http://example.org/?u=http://127.0.0.1/ http://example.org/#@127.0.0.1
    http://example.org:0080/ http://example.org/%00 http://example.org/%0d%0a http://example.org//x
    http://example.org/../x http://example.org/ü`),
  `http://example.org/${'a'.repeat(2000)}`,
]

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
