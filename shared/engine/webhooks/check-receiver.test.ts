import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { acceptedUrls, refusedUrls } from '@parley/kit/net/outgoing-url.cases'
import { ParleyError } from '@parley/wire/errors'
import { expect, test } from 'vitest'
import { type CheckOptions, checkReceiver } from './check-receiver.ts'

const resolver = async () => ['93.184.216.34']

test(`refuses all ${refusedUrls.length} URLs that must be refused`, async () => {
  const faults = await Promise.all(refusedUrls.map((url) => faultOf({ url })))
  expect(refusedUrls.filter((_url, index) => faults[index] === undefined)).toEqual([])
})

test(`accepts all ${acceptedUrls.length} URLs with a public host`, async () => {
  const faults = await Promise.all(acceptedUrls.map((url) => faultOf({ url })))
  expect(acceptedUrls.filter((_url, index) => faults[index] !== undefined)).toEqual([])
})

test('a refusal is -32602 with a reason and a field, and does not repeat the URL', async () => {
  const fault = await faultOf({ url: 'http://10.1.2.3/secret' })
  const message = 'The host of the URL is not on the public internet (private)'
  expect(fault).toMatchObject({
    code: -32602,
    message: `${message}.`,
    data: { reason: 'not_public', issues: [{ path: 'push_notification_config.url', message }] },
  })
})

test.each([
  ['a scheme with a space', { scheme: 'Bearer x', credentials: 'secret' }],
  ['an empty scheme', { scheme: '', credentials: 'secret' }],
  ['a scheme with a line break', { scheme: 'Bearer\r\nX', credentials: 'secret' }],
  ['credentials with a line break', { scheme: 'Bearer', credentials: 'secret\r\nX-Admin: yes' }],
  ['empty credentials', { scheme: 'Bearer', credentials: '' }],
  ['credentials in another script', { scheme: 'Bearer', credentials: 'sécret' }],
  ['long credentials', { scheme: 'Bearer', credentials: 'secret'.repeat(1000) }],
])('refuses %s, and does not repeat them', async (_title, credentials) => {
  const url = 'https://hook.example/'
  const fault = await faultOf({ url, credentials })
  const path = 'push_notification_config.authentication'
  expect(fault).toMatchObject({ error: 'InvalidParams', data: { issues: [{ path }] } })
  expect(JSON.stringify([fault?.message, fault?.data])).not.toMatch(/secret|sécret|X-Admin/)
  expect(await faultOf({ url, credentials: { scheme: 'Basic', credentials: 'dTpw' } })).toBeUndefined()
})

test.each([
  ['127.0.0.1', 'loopback'],
  ['10.0.0.1', 'private'],
  ['169.254.169.254', 'cloud metadata'],
  ['100.64.0.1', 'shared by carriers'],
  ['0.0.0.0', 'unspecified'],
  ['::1', 'loopback'],
  ['fe80::1', 'link-local'],
  ['::ffff:192.168.1.1', 'private'],
  ['64:ff9b::7f00:1', 'loopback'],
  ['2002:7f00:1::', '6to4 tunnel'],
])(
  'refuses a name that resolves to %s, alone or together with a public address (%s)',
  async (address, is) => {
    for (const answers of [[address], ['93.184.216.34', address], [address, '93.184.216.34']]) {
      const fault = await faultOf({ url: 'https://hook.example/' }, { resolver: async () => answers })
      expect(fault).toMatchObject({ code: -32602, data: { reason: 'not_public' } })
      expect(fault?.message).toContain(is)
    }
  },
)

test.each([
  ['is not found', () => Promise.reject(new Error('ENOTFOUND'))],
  ['has no address', async () => []],
  ['does not resolve in time', () => new Promise<string[]>(() => {})],
])('accepts a name that %s', async (_title, unknown) => {
  expect(
    await faultOf({ url: 'https://hook.example/' }, { resolver: unknown, timeoutMs: 20 }),
  ).toBeUndefined()
})

test('WEBHOOK_ALLOWED_HOSTS lists exceptions', async () => {
  const allowed = parseAllowedHosts('hooks.internal, 10.0.0.0/8')
  const private_ = async () => ['10.0.0.1']
  for (const url of ['http://hooks.internal/', 'http://10.1.2.3/', 'http://hook.example/'])
    expect(await faultOf({ url }, { allowed, resolver: private_ })).toBeUndefined()
  for (const url of ['http://other.internal/', 'http://192.168.0.1/'])
    expect(await faultOf({ url }, { allowed, resolver: private_ })).toBeDefined()
})

test.each(['a', 'a-b_c.d~e+f/g==', 'with a space', '!"#$%&()*,:;<=>?@[]^`{|}', 'x'.repeat(4096)])(
  'the token %.30j is accepted',
  async (token) => {
    expect(await faultOf({ url: 'https://hook.example/', token })).toBeUndefined()
  },
)

test.each([
  '',
  ' a',
  'a ',
  'a\r\nX-Admin: yes',
  'a\nb',
  'a\rb',
  'a\n',
  '\na',
  'a\tb',
  'a\u0000b',
  'a\u007fb',
  'a\u0085b',
  'a\u2028b',
  'é',
  '☃',
  'x'.repeat(4097),
])('refuses the token %.30j without repeating it', async (token) => {
  const fault = await faultOf({ url: 'https://hook.example/', token })
  expect(fault).toMatchObject({ code: -32602, data: { reason: 'token' } })
  expect(JSON.stringify([fault?.message, fault?.data])).not.toContain('Admin')
})

async function faultOf(
  receiver: Parameters<typeof checkReceiver>[0],
  options: CheckOptions = {},
): Promise<ParleyError | undefined> {
  try {
    await checkReceiver(receiver, { resolver, ...options })
    return undefined
  } catch (error) {
    if (error instanceof ParleyError) return error
    throw error
  }
}
