import { expect, test } from 'vitest'
import { allowsAddress, allowsName } from '../net/allowed-hosts.ts'
import { agentConfig } from './config.ts'
import {
  agentSettings,
  ConfigError,
  cliSettings,
  commonSettings,
  gatewaySettings,
  readSettings,
} from './settings.ts'

const read = (env: Record<string, string>) => agentConfig(env).config

test('the default rate limit is 600 per minute in production and off in development', () => {
  expect(read({}).rateLimitPerMinute).toBe(0)
  expect(read({ NODE_ENV: 'production' }).rateLimitPerMinute).toBe(600)
  expect(read({ NODE_ENV: 'production', RATE_LIMIT_PER_MINUTE: '0' }).rateLimitPerMinute).toBe(0)
  expect(read({ RATE_LIMIT_PER_MINUTE: '5' }).rateLimitPerMinute).toBe(5)
})

test('webhooks may be sent to this machine in development but only to public addresses in production', () => {
  const allows = (env: Record<string, string>) => {
    const { webhookAllowedHosts: hosts } = read(env)
    return [
      allowsName(hosts, 'localhost'),
      ...['127.0.0.1', '::1', '10.0.0.1'].map((ip) => allowsAddress(hosts, ip)),
    ]
  }
  expect(allows({})).toEqual([true, true, true, false])
  expect(allows({ WEBHOOK_ALLOWED_HOSTS: '' })).toEqual([true, true, true, false])
  expect(allows({ WEBHOOK_ALLOWED_HOSTS: 'none' })).toEqual([false, false, false, false])
  expect(allows({ WEBHOOK_ALLOWED_HOSTS: '10.0.0.0/8' })).toEqual([false, false, false, true])
  expect(allows({ NODE_ENV: 'production' })).toEqual([false, false, false, false])
  const named = { NODE_ENV: 'production', WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' }
  expect(allows(named)).toEqual([false, true, false, false])
})

test('there are no trusted proxies and no allowed origins by default', () => {
  expect(read({})).toMatchObject({ trustedProxies: [], corsOrigins: [] })
  const config = read({
    TRUSTED_PROXIES: ' 10.0.0.0/8, ::1 ',
    CORS_ORIGINS: 'https://a.example,http://b.example:81',
  })
  expect(config.trustedProxies).toEqual(['10.0.0.0/8', '::1'])
  expect(config.corsOrigins).toEqual(['https://a.example', 'http://b.example:81'])
})

test('OAUTH_AUDIENCES are compared without a trailing slash', () => {
  expect(read({}).audiences).toEqual([])
  const config = read({ OAUTH_AUDIENCES: 'https://a.example/agents/b/, did:parley:a:agent:b' })
  expect(config.audiences).toEqual(['https://a.example/agents/b', 'did:parley:a:agent:b'])
})

const settings = { ...commonSettings, ...agentSettings, ...gatewaySettings, ...cliSettings }
const numeric = Object.entries(settings)
  .filter(([, { schema }]) => typeof schema.safeParse('1').data === 'number')
  .map(([name]) => name)

test.each(numeric)(
  '%s must be decimal digits: white space is not 0, and other notations are rejected',
  (name) => {
    expect(numeric.length).toBeGreaterThan(5)
    for (const value of [' ', '\t', '1e3', '0x10', '-1', '1 2', 'NaN', '9'.repeat(400)]) {
      expect(() => readSettings(settings, { [name]: value })).toThrow(
        new RegExp(`^${name} must be a [^\n]+\\.$`),
      )
    }
    expect(readSettings(settings, { [name]: ' 1 ' })).toMatchObject({ [name]: 1 })
  },
)

test.each([
  ['OAUTH_AUDIENCES', 'here'],
  ['OAUTH_AUDIENCES', 'https://a.example,'],
  ['OAUTH_AUDIENCES', 'file:///etc'],
  ['RATE_LIMIT_PER_MINUTE', '-1'],
  ['RATE_LIMIT_PER_MINUTE', '1.5'],
  ['RATE_LIMIT_PER_MINUTE', ' '],
  ['RATE_LIMIT_PER_MINUTE', 'off'],
  ['RATE_LIMIT_PER_MINUTE', '1e3'],
  ['TRUSTED_PROXIES', 'true'],
  ['TRUSTED_PROXIES', '1'],
  ['TRUSTED_PROXIES', 'proxy.example'],
  ['TRUSTED_PROXIES', '10.0.0.0/33'],
  ['TRUSTED_PROXIES', '10.0.0.0/'],
  ['TRUSTED_PROXIES', '10.0.0.0/8/8'],
  ['TRUSTED_PROXIES', '10.0.0.1,'],
  ['TRUSTED_PROXIES', 'fe80::1%eth0'],
  ['TRUSTED_PROXIES', '*'],
  ['CORS_ORIGINS', 'app.example'],
  ['CORS_ORIGINS', 'https://app.example/'],
  ['CORS_ORIGINS', 'https://app.example/path'],
  ['CORS_ORIGINS', 'https://app.example:443'],
  ['CORS_ORIGINS', 'https://App.example'],
  ['CORS_ORIGINS', 'https://*.example'],
  ['CORS_ORIGINS', 'https://user@app.example'],
  ['CORS_ORIGINS', 'null'],
  ['CORS_ORIGINS', 'file://'],
  ['CORS_ORIGINS', 'https://a.example https://b.example'],
])('%s=%s is rejected with one sentence', (name, value) => {
  expect(() => read({ [name]: value })).toThrow(ConfigError)
  expect(() => read({ [name]: value })).toThrow(new RegExp(`^${name} must be [^\n]+\\.$`))
})
