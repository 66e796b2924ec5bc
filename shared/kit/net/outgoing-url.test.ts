import { expect, test } from 'vitest'
import { OutgoingRefused, type RefusedReason } from './outgoing-errors.ts'
import { acceptedUrls, refusedUrls } from './outgoing-url.cases.ts'
import { outgoingUrl } from './outgoing-url.ts'

test(`of ${refusedUrls.length} URLs that must be rejected, none is accepted`, () => {
  expect(refusedUrls.filter((url) => reasonFor(url) === undefined)).toEqual([])
})

test(`of ${acceptedUrls.length} URLs with a public host, none is rejected`, () => {
  expect(
    acceptedUrls.map((url) => [url, reasonFor(url)]).filter(([, reason]) => reason !== undefined),
  ).toEqual([])
})

const reasons: [url: string, reason: RefusedReason][] = [
  ['', 'malformed'],
  ['hook', 'malformed'],
  ['http://exa\nmple.org/', 'malformed'],
  ['http://example.org\\@127.0.0.1/', 'malformed'],
  [`http://example.org/${'a'.repeat(10_000)}`, 'too_long'],
  ['file:///etc/passwd', 'scheme'],
  ['http:///example.org', 'host'],
  ['http://a..b/', 'host'],
  ['http://[fe80::1%25eth0]/', 'host'],
  ['http://[2606:4700::1%1]/', 'host'],
  ['http://a:b@example.org/', 'credentials'],
  ['http://@example.org/', 'credentials'],
  ['http://example.org:0/', 'port'],
  ['http://example.org:70000/', 'port'],
  ['http://[2606:4700::1]:70000/', 'port'],
  ['http://localhost./', 'local_name'],
  ['http://metadata.google.internal/', 'local_name'],
  ['http://0177.1/', 'not_public'],
]
test.each(reasons)('%.60s: refused as %s', (url, reason) => {
  expect(reasonFor(url)).toBe(reason)
})

test('a rejection names the kind of address and repeats no part of the URL', () => {
  expect(() => outgoingUrl('http://10.1.2.3/secret')).toThrow(
    new OutgoingRefused('not_public', 'The host of the URL is not on the public internet (private)'),
  )
})

test('the name is converted to lower-case ASCII without a trailing dot, and the fragment is dropped', () => {
  const { url, host, isAddress } = outgoingUrl('https://BÜCHER.Example.:8443/a?b#c')
  expect([url.href, host, isAddress]).toEqual([
    'https://xn--bcher-kva.example:8443/a?b',
    'xn--bcher-kva.example',
    false,
  ])
})

function reasonFor(url: string): RefusedReason | undefined {
  try {
    outgoingUrl(url)
    return undefined
  } catch (error) {
    if (error instanceof OutgoingRefused) return error.reason
    throw error
  }
}
