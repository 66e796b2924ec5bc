import { expect, test } from 'vitest'
import { gatewayConfig } from './config.ts'

test('without settings the gateway listens on 127.0.0.1:7400 and has its own OAuth server', () => {
  const { config } = gatewayConfig({})
  expect(config).toMatchObject({ host: '127.0.0.1', port: 7400, embeddedOAuth: true, production: false })
})

test('OAUTH_ISSUER takes the place of the embedded OAuth server', () => {
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

test('PARLEY_EMBEDDED_OAUTH=yes lets the embedded OAuth server start in production', () => {
  const { config } = gatewayConfig({ NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes' })
  expect(config).toMatchObject({ embeddedOAuth: true, production: true })
})

test.each<[string, NodeJS.ProcessEnv, RegExp]>([
  [
    'production without an OAuth server',
    { NODE_ENV: 'production' },
    /set OAUTH_ISSUER .* or PARLEY_EMBEDDED_OAUTH=yes/,
  ],
  [
    'production with a no to the embedded one',
    { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'no' },
    /OAUTH_ISSUER/,
  ],
  ['an issuer without our client', { OAUTH_ISSUER: 'https://id.example' }, /OAUTH_CLIENT_ID/],
  [
    'an issuer that is no address',
    { OAUTH_ISSUER: 'id.example' },
    /OAUTH_ISSUER must be an http or https URL/,
  ],
  ['a port that is none', { PORT: '70000' }, /PORT/],
  ['a yes that is none', { PARLEY_EMBEDDED_OAUTH: 'true' }, /PARLEY_EMBEDDED_OAUTH must be yes or no/],
])('refused with a sentence: %s', (_what, env, sentence) => {
  expect(() => gatewayConfig(env)).toThrow(sentence)
})
