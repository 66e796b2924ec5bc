import { expect, test } from 'vitest'
import { dialectOf } from '../dialects.ts'
import { a2aV1 } from './dialect.ts'

const versioned = (version: string) => ({ path: '/a2a/v1', headers: { 'a2a-version': version } })

test.each(['1', '1.0', '1.1', '1.0.1', ' 1.0 ', ''])('accepts the version %j', (version) => {
  expect(a2aV1.negotiate(versioned(version))).toEqual({ 'a2a-version': '1.0' })
})

test.each(['0.3', '2.0', '10', '1.', '1.x', '1.0, 0.3', '99.0'])(
  'refuses the version %j and names its own',
  (version) => {
    expect(() => a2aV1.negotiate(versioned(version))).toThrow(
      expect.objectContaining({ error: 'VersionNotSupported', data: { supported: ['1.0'] } }),
    )
  },
)

test('the version may be a query parameter, and the header takes precedence', () => {
  const request = { path: '/a2a/v1', headers: {}, query: 'x=1&A2A-Version=0.3' }
  expect(() => a2aV1.negotiate(request)).toThrow(expect.objectContaining({ error: 'VersionNotSupported' }))
  expect(a2aV1.negotiate({ ...request, headers: { 'a2a-version': '1.0' } })).toEqual({ 'a2a-version': '1.0' })
  expect(a2aV1.negotiate({ path: '/a2a/v1', headers: {} })).toEqual({ 'a2a-version': '1.0' })
})

test('a method name of the protocol selects the dialect at the root, and the version until the body is read', () => {
  expect(dialectOf({ path: '/', headers: {}, method: 'SendMessage' })).toBe(a2aV1)
  expect(dialectOf({ path: '/', headers: {}, method: 'message/send' })).not.toBe(a2aV1)
  expect(dialectOf({ path: '/', headers: {}, method: 'sendMessage' })).not.toBe(a2aV1)
  const before = { path: '/', headers: { 'a2a-version': '1.0' } }
  expect(dialectOf(before)).toBe(a2aV1)
  expect(dialectOf({ ...before, method: 'message/send' })).not.toBe(a2aV1)
  for (const path of ['/a2a/v1', '/a2a/v1/'])
    expect(dialectOf({ path, headers: {}, method: 'message/send' })).toBe(a2aV1)
})

test('the version selects the card at the path that the versions share', () => {
  const path = '/.well-known/agent-card.json'
  expect(dialectOf({ path, headers: { 'a2a-version': '1.0' } })).toBe(a2aV1)
  expect(dialectOf({ path, headers: {}, query: 'A2A-Version=1.0' })).toBe(a2aV1)
  expect(dialectOf({ path, headers: {} })).not.toBe(a2aV1)
  expect(dialectOf({ path, headers: { 'a2a-version': '0.3' } })).not.toBe(a2aV1)
  expect(dialectOf({ path: `/a2a/v1${path}`, headers: {} })).toBe(a2aV1)
})

test('the extensions that the client activates are read from the header', () => {
  expect(a2aV1.readExtensions({ 'a2a-extensions': 'https://a, https://b,,https://a' })).toEqual([
    'https://a',
    'https://b',
  ])
  expect(a2aV1.readExtensions({ 'a2a-extensions': ['https://a', 'https://b'] })).toEqual([
    'https://a',
    'https://b',
  ])
  expect(a2aV1.readExtensions({})).toEqual([])
  expect(
    a2aV1.readExtensions({ 'a2a-extensions': Array.from({ length: 500 }, (_, at) => `u:${at}`).join() }),
  ).toHaveLength(100)
  expect(a2aV1.readExtensions({ 'a2a-extensions': 'x'.repeat(3000) })).toEqual([])
})
