import { expect, test } from 'vitest'
import { readElicitation } from './input-requests.ts'

const page = (url: unknown) => readElicitation('key', { mode: 'url', message: 'Sign in', url })

test.each([
  ['with a script', 'javascript:alert(1)'],
  ['without an address', undefined],
  ['with text instead of an address', 'no address'],
  ['with an address of 5,000 characters', `https://a.test/${'x'.repeat(5000)}`],
])('a request to visit a page %s is refused', (_what, url) => {
  expect(() => page(url)).toThrow('The server names a page without a valid address')
})

test('a request to visit a page shows its address', () => {
  expect(page('https://a.test/login')).toEqual({
    key: 'key',
    message: 'Sign in',
    url: 'https://a.test/login',
  })
})
