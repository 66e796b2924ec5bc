import { expect, test } from 'vitest'
import { dialectOf } from '../dialects.ts'
import { a2aV03 } from './dialect.ts'

const choice = (path: string, version?: string, method?: string) =>
  dialectOf({
    path,
    headers: version === undefined ? {} : { 'a2a-version': version },
    ...(method !== undefined && { method }),
  }).name

test.each([
  '/a2a/v0.3',
  '/a2a/v0.3/',
  '/a2a/v0.3/.well-known/agent-card.json',
  '/a2a/v0.3/.well-known/agent.json',
])('%s is answered in A2A 0.3, with any version header', (path) => {
  expect(choice(path)).toBe('a2a-v0.3')
  expect(choice(path, '0.3')).toBe('a2a-v0.3')
  expect(choice(path, '1.0')).toBe('a2a-v0.3')
})

test('POST / is answered in A2A 0.3 if the header names that version and the method exists in it', () => {
  expect(choice('/', '0.3', 'message/send')).toBe('a2a-v0.3')
  expect(choice('/', ' 0.3.0 ', 'tasks/get')).toBe('a2a-v0.3')
  expect(choice('/', '0.3')).toBe('a2a-v0.3')
  expect(choice('/', undefined, 'message/send')).toBe('parley')
  expect(choice('/', '', 'message/send')).toBe('parley')
  expect(choice('/', '0.3', 'tasks/list')).toBe('parley')
  expect(choice('/', '0.30', 'message/send')).toBe('parley')
})

test('the common card path has the card of both versions, unless the client asks for 1.x', () => {
  const path = '/.well-known/agent-card.json'
  expect(choice(path)).toBe('a2a-v0.3')
  expect(choice(path, '0.3')).toBe('a2a-v0.3')
  expect(a2aV03.accepts({ path, headers: { 'a2a-version': '1.0' } })).toBe(false)
  expect(a2aV03.accepts({ path, headers: { 'a2a-version': '1.1' } })).toBe(false)
})

test('the negotiation fields are in the configuration or in the metadata of the call or of its message', () => {
  const negotiation = { min_score: 0.5 }
  expect(a2aV03.readQuery({ configuration: { negotiation } })).toBe(negotiation)
  expect(a2aV03.readQuery({ configuration: {}, metadata: { negotiation } })).toBe(negotiation)
  expect(a2aV03.readQuery({ message: { metadata: { negotiation } } })).toBe(negotiation)
  expect(a2aV03.readQuery({ message: 'x', metadata: [negotiation] })).toBeUndefined()
})

test.each([
  ['no version', {}],
  ['an empty version', { 'a2a-version': '' }],
  ['0.3', { 'a2a-version': '0.3' }],
  ['a patch of 0.3', { 'a2a-version': '0.3.2' }],
])('%s is accepted', (_, headers) => {
  expect(a2aV03.negotiate({ path: '/a2a/v0.3', headers })).toEqual({})
})

test.each(['1.0', '0.2', '0.4', '03', 'x'.repeat(10_000)])('the version %.10s is refused', (version) => {
  const request = { path: '/a2a/v0.3', headers: { 'a2a-version': version } }
  expect(() => a2aV03.negotiate(request)).toThrow(
    expect.objectContaining({ error: 'VersionNotSupported', data: { supported: ['0.3'] } }),
  )
})
