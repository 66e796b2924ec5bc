import { expect, test } from 'vitest'
import { allowsAddress, allowsName, parseAllowedHosts } from './allowed-hosts.ts'
import { outgoingUrl } from './outgoing-url.ts'

test('a list may contain names, addresses and blocks in any spelling, and empty entries', () => {
  const allowed = parseAllowedHosts(
    ' Hooks.Internal., 10.1.0.0/16,,[fd00::1] , 127.0.0.1, fd12::/16, bücher.local,',
  )
  for (const name of ['hooks.internal', 'xn--bcher-kva.local']) expect(allowsName(allowed, name)).toBe(true)
  for (const name of ['internal', 'a.hooks.internal', 'hooks.internal.example.org'])
    expect(allowsName(allowed, name)).toBe(false)
  for (const address of ['10.1.255.255', '::ffff:10.1.2.3', 'fd00::1', '127.0.0.1', 'fd12:ffff::9'])
    expect(allowsAddress(allowed, address)).toBe(true)
  for (const address of ['10.2.0.0', 'fd00::2', '127.0.0.2', '::1', '::ffff:10.2.0.0', 'fd13::1', 'nonsense'])
    expect(allowsAddress(allowed, address)).toBe(false)
})

test('an empty list allows nothing', () => {
  const allowed = parseAllowedHosts('')
  expect(allowed.names.size + allowed.blocks.length).toBe(0)
})

test.each([
  'localhost:9000',
  'http://localhost',
  '*.example.org',
  '10.0.0.0/33',
  '10.1',
  '0x7f.1',
  '999.1.1.1',
  'a b',
  'a..b',
  'fe80::1%eth0',
  '[::1',
  'user@host',
])('"%s" is rejected with a message that contains it', (entry) => {
  expect(() => parseAllowedHosts(`example.org,${entry}`)).toThrow(`"${entry}" is neither`)
})

test('a listed name is allowed, but other names with the same address are not', () => {
  const allowed = parseAllowedHosts('localhost,10.0.0.0/8')
  expect(outgoingUrl('http://LOCALHOST.:9000/hook', allowed).url.href).toBe('http://localhost:9000/hook')
  expect(outgoingUrl('http://10.9.9.9/', allowed).host).toBe('10.9.9.9')
  expect(outgoingUrl('http://[::ffff:10.9.9.9]/', allowed).isAddress).toBe(true)
  for (const url of [
    'http://127.0.0.1:9000/',
    'http://a.localhost/',
    'http://11.localhost/',
    'http://192.168.0.1/',
  ])
    expect(() => outgoingUrl(url, allowed)).toThrow('not')
})

test('credentials, invalid ports and invalid schemes are rejected even for allowed hosts', () => {
  const allowed = parseAllowedHosts('localhost,0.0.0.0/0,::/0')
  for (const url of [
    'http://a@localhost/',
    'http://localhost:0/',
    'ftp://localhost/',
    'http://b:c@127.0.0.1/',
  ])
    expect(() => outgoingUrl(url, allowed)).toThrow('The')
})
