import { inspect } from 'node:util'
import { allowsAddress, allowsName } from '@parley/kit/net/allowed-hosts'
import { expect, test } from 'vitest'
import { gatewayConfig } from './config.ts'

test('without settings the gateway listens on 127.0.0.1:7400 and runs its own OAuth server', () => {
  const { config } = gatewayConfig({})
  expect(config).toMatchObject({ host: '127.0.0.1', port: 7400, embeddedOAuth: true, production: false })
})

test('OAUTH_ISSUER replaces the embedded OAuth server', () => {
  const env = {
    OAUTH_ISSUER: 'https://id.example/',
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_CLIENT_SECRET: 'of the gateway',
  }
  const { config, secrets } = gatewayConfig({ ...env, NODE_ENV: 'production' })
  expect(config.embeddedOAuth).toBe(false)
  expect(config.oauth.issuer).toBe('https://id.example')
  expect(secrets.oauthClientSecret).toBe('of the gateway')
  expect(JSON.stringify(config)).not.toContain('of the gateway')
})

test('PARLEY_EMBEDDED_OAUTH=yes enables the embedded OAuth server in production', () => {
  const { config } = gatewayConfig({ NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes' })
  expect(config).toMatchObject({ embeddedOAuth: true, production: true })
})

const seed = Buffer.alloc(32, 7).toString('base64')
function identity(given: { seed?: string; author?: string; name?: string }): NodeJS.ProcessEnv {
  return {
    SERVICE_GATEWAY_DID_SEED: given.seed ?? seed,
    SERVICE_GATEWAY_AUTHOR: given.author ?? 'ada@example.com',
    SERVICE_GATEWAY_NAME: given.name ?? 'Front Door',
  }
}

test('the identity settings accept base64 or base64url, and the seed is not part of the configuration', () => {
  const urlSafe = Buffer.alloc(32, 255).toString('base64url')
  for (const text of [urlSafe, Buffer.alloc(32, 255).toString('base64')]) {
    const { config, secrets } = gatewayConfig(identity({ seed: text }))
    expect(secrets.identity).toMatchObject({ author: 'ada@example.com', name: 'Front Door' })
    expect(secrets.identity?.seed).toEqual(Buffer.alloc(32, 255))
    expect(inspect(config, { depth: null })).not.toContain(urlSafe)
  }
  expect(gatewayConfig({}).secrets.identity).toBeUndefined()
})

test('errors in the identity settings never contain the seed', () => {
  const wrong = Buffer.alloc(33, 9).toString('base64')
  const read = () => gatewayConfig(identity({ seed: wrong }))
  expect(read).toThrow('SERVICE_GATEWAY_DID_SEED')
  expect(read).not.toThrow(wrong)
})

test('the registry is closed to external agents, even in development, unless REGISTRY_OPEN is set', () => {
  const production = { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes' }
  const open = (env: NodeJS.ProcessEnv) => gatewayConfig(env).config.registryOpen
  expect([{}, production, { REGISTRY_OPEN: 'no' }].map(open)).toEqual([false, false, false])
  const opened = [{ REGISTRY_OPEN: 'yes' }, { ...production, REGISTRY_OPEN: 'yes' }]
  expect(opened.map(open)).toEqual([true, true])
})

test('agents may register from this machine in development, but only from public addresses in production', () => {
  const allows = (env: NodeJS.ProcessEnv) => {
    const { registryAllowedHosts: hosts } = gatewayConfig(env).config
    return [
      allowsName(hosts, 'localhost'),
      ...['127.0.0.1', '::1', '10.0.0.1'].map((ip) => allowsAddress(hosts, ip)),
    ]
  }
  const production = { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes' }
  expect(allows({})).toEqual([true, true, true, false])
  expect(allows({ REGISTRY_ALLOWED_HOSTS: 'none' })).toEqual([false, false, false, false])
  expect(allows({ REGISTRY_ALLOWED_HOSTS: '10.0.0.0/8' })).toEqual([false, false, false, true])
  expect(allows(production)).toEqual([false, false, false, false])
  expect(allows({ ...production, REGISTRY_ALLOWED_HOSTS: '::1' })).toEqual([false, false, true, false])
})

test.each<[string, NodeJS.ProcessEnv, RegExp]>([
  [
    'production without an OAuth server',
    { NODE_ENV: 'production' },
    /set OAUTH_ISSUER .* or PARLEY_EMBEDDED_OAUTH=yes/,
  ],
  [
    'production with the embedded one disabled',
    { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'no' },
    /OAUTH_ISSUER/,
  ],
  ['an issuer without client credentials', { OAUTH_ISSUER: 'https://id.example' }, /OAUTH_CLIENT_ID/],
  [
    'an issuer that is not a URL',
    { OAUTH_ISSUER: 'id.example' },
    /OAUTH_ISSUER must be an http or https URL/,
  ],
  ['an invalid port', { PORT: '70000' }, /PORT/],
  [
    'a catalog that is no address',
    { CATALOG_SOURCES: 'https://a.example, b.example' },
    /CATALOG_SOURCES must be/,
  ],
  [
    'only a seed',
    { SERVICE_GATEWAY_DID_SEED: seed },
    /SERVICE_GATEWAY_AUTHOR and SERVICE_GATEWAY_NAME too, or none of the three/,
  ],
  [
    'an author and a name without a seed',
    { SERVICE_GATEWAY_AUTHOR: 'a', SERVICE_GATEWAY_NAME: 'b' },
    /SERVICE_GATEWAY_DID_SEED too, or none of the three/,
  ],
  ['a seed of 31 bytes', identity({ seed: Buffer.alloc(31).toString('base64') }), /exactly 32 bytes/],
  ['a seed of 33 bytes', identity({ seed: Buffer.alloc(33).toString('base64') }), /exactly 32 bytes/],
  ['a seed that is not base64', identity({ seed: `${'a'.repeat(42)}!!` }), /exactly 32 bytes/],
  ['an author with a colon', identity({ author: 'a:b' }), /SERVICE_GATEWAY_AUTHOR may contain only/],
  ['an author with a slash', identity({ author: 'a/b' }), /SERVICE_GATEWAY_AUTHOR may contain only/],
  ['an author with an emoji', identity({ author: 'a🙂' }), /SERVICE_GATEWAY_AUTHOR may contain only/],
  ['a name with a colon', identity({ name: 'a:b' }), /SERVICE_GATEWAY_NAME may contain only/],
  ['invalid hosts', { REGISTRY_ALLOWED_HOSTS: '127.0.0.1,http://x' }, /REGISTRY_ALLOWED_HOSTS: "http/],
  ['an invalid value of REGISTRY_OPEN', { REGISTRY_OPEN: '1' }, /REGISTRY_OPEN must be yes or no/],
  ['an invalid yes', { PARLEY_EMBEDDED_OAUTH: 'true' }, /PARLEY_EMBEDDED_OAUTH must be yes or no/],
])('the gateway refuses %s with a message', (_what, env, sentence) => {
  expect(() => gatewayConfig(env)).toThrow(sentence)
})
