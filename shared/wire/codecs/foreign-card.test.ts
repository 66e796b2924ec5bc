import { describe, expect, test } from 'vitest'
import { isForeignCard, readForeignInterface } from './foreign-card.ts'

const base = { name: 'a', capabilities: { streaming: true } }
const v1 = { url: 'https://a.test/v1', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }
const v03 = { url: 'https://a.test/v03', protocolBinding: 'JSONRPC', protocolVersion: '0.3' }
const grpc = { url: 'a.test:50051', protocolBinding: 'GRPC', protocolVersion: '1.0' }

test.each([
  [
    { ...base, supportedInterfaces: [grpc, v03, v1] },
    { url: v1.url, dialect: 'a2a-v1' },
  ],
  [
    { ...base, supportedInterfaces: [v03] },
    { url: v03.url, dialect: 'a2a-v0.3' },
  ],
  [
    { ...base, protocolVersion: '0.3.0', url: 'https://a.test/' },
    { dialect: 'a2a-v0.3', streaming: true },
  ],
  [
    { name: 'a', url: 'https://a.test/', defaultInputModes: ['text'] },
    { dialect: 'a2a-v0.3', streaming: false },
  ],
  [
    {
      ...base,
      protocolVersion: '0.3.0',
      url: 'a.test:1',
      preferredTransport: 'GRPC',
      additionalInterfaces: [{ url: 'https://a.test/rpc', transport: 'JSONRPC' }],
    },
    { url: 'https://a.test/rpc', dialect: 'a2a-v0.3' },
  ],
])('the interface of %j', (card, expected) => {
  expect(isForeignCard(card)).toBe(true)
  expect(readForeignInterface(card)).toMatchObject(expected)
})

test('an agent that offers GRPC only cannot be called', () => {
  expect(readForeignInterface({ ...base, supportedInterfaces: [grpc] })).toBe(
    'The agent offers GRPC only. It has to offer JSONRPC of A2A 0.2, 0.3 or 1.0',
  )
  expect(readForeignInterface({ ...base, supportedInterfaces: 7 })).toContain('The card is not valid')
})

test.each([
  { did: 'did:parley:a', url: 'x', supportedInterfaces: [v1] },
  { name: 'a' },
  { protocolVersion: '1.0.0' },
])('%j is not a foreign card', (card) => {
  expect(isForeignCard(card)).toBe(false)
})

const clientCredentials = { tokenUrl: 'https://o.test/token', scopes: { read: '' } }

test.each([
  [{ type: 'http', scheme: 'Bearer' }, { kind: 'bearer' }],
  [{ httpAuthSecurityScheme: { scheme: 'bearer' } }, { kind: 'bearer' }],
  [
    { type: 'apiKey', in: 'header', name: 'X-Key' },
    { kind: 'apiKey', in: 'header', name: 'X-Key' },
  ],
  [{ apiKeySecurityScheme: { location: 'query', name: 'k' } }, { kind: 'apiKey', in: 'query', name: 'k' }],
  [
    { oauth2SecurityScheme: { flows: { clientCredentials } } },
    { kind: 'oauth2', tokenUrl: 'https://o.test/token', scopes: ['read'] },
  ],
])('the security scheme %j', (scheme, expected) => {
  const card = { ...base, supportedInterfaces: [v1], securitySchemes: { s: scheme }, security: [{ s: [] }] }
  expect(readForeignInterface(card)).toMatchObject({ security: [expected], unsupportedSecurity: false })
})

test('a required scheme that is not supported is reported', () => {
  const securitySchemes = { s: { type: 'mutualTLS' } }
  const card = { ...base, supportedInterfaces: [v1], securitySchemes, security: [{ s: [] }] }
  expect(readForeignInterface(card)).toMatchObject({ security: [], unsupportedSecurity: true })
})

describe('requirements of a card with several schemes', () => {
  const securitySchemes = {
    key: { type: 'apiKey', in: 'header', name: 'X-Key' },
    jwt: { type: 'http', scheme: 'bearer' },
    login: {
      type: 'oauth2',
      flows: { clientCredentials: { tokenUrl: 'https://o.test/token', scopes: { a: '', b: '' } } },
    },
    mtls: { type: 'mutualTLS' },
  }
  const read = (more: object) => {
    const found = readForeignInterface({ ...base, supportedInterfaces: [v1], securitySchemes, ...more })
    if (typeof found === 'string') return found
    const { security, unsupportedSecurity } = found
    return { schemes: security.map(({ scheme }) => scheme), unsupportedSecurity, security }
  }

  test.each<[string, object, string[], boolean]>([
    ['none', {}, ['key', 'jwt', 'login'], false],
    ['alternatives of 0.3', { security: [{ mtls: [] }, { jwt: [] }, { key: [] }] }, ['jwt', 'key'], false],
    [
      'alternatives of 1.0',
      { securityRequirements: [{ schemes: { login: { list: ['b'] } } }, { schemes: { jwt: { list: [] } } }] },
      ['login', 'jwt'],
      false,
    ],
    ['two schemes together', { security: [{ jwt: [], key: [] }] }, [], true],
    ['an unknown scheme', { security: [{ other: [] }] }, [], true],
    ['one that may be left out', { security: [{}, { mtls: [] }] }, [], false],
  ])('%s', (_what, more, schemes, unsupportedSecurity) => {
    expect(read(more)).toMatchObject({ schemes, unsupportedSecurity })
  })

  test('the scopes of a requirement replace those of the scheme', () => {
    const securityRequirements = [{ schemes: { login: { list: ['b'] } } }]
    expect(read({ securityRequirements })).toMatchObject({ security: [{ kind: 'oauth2', scopes: ['b'] }] })
    expect(read({})).toMatchObject({ security: [{}, {}, { kind: 'oauth2', scopes: ['a', 'b'] }] })
  })
})
