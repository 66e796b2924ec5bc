import type { ForeignInterface } from '@parley/wire/codecs/foreign-card'
import { describe, expect, test } from 'vitest'
import type { AgentEntry } from '../registry/entry.ts'
import { AgentCredentials } from './agent-credentials.ts'

const oauth2 = { kind: 'oauth2' as const, tokenUrl: 'https://o.test/token', scopes: ['a', 'b'] }

test.each<[ForeignInterface['security'], string, object]>([
  [[], 'T', { kind: 'bearer', token: 'T' }],
  [[{ kind: 'apiKey', in: 'query', name: 'k' }], 'v', { kind: 'apiKey', in: 'query', name: 'k', value: 'v' }],
  [[oauth2], 'me:s:1', { kind: 'oauth2', clientId: 'me', clientSecret: 's:1', scope: 'a b' }],
])('with the schemes %j, %s becomes a credential', async (security, text, expected) => {
  const credentials = new AgentCredentials(memoryStore())
  await credentials.set(entryOf({ security }), text)
  expect(credentials.of(entryOf({ security }))).toMatchObject(expected)
})

test('a credential is bound to the origin for which it was set, can be replaced, and is removed with the agent', async () => {
  const store = memoryStore()
  const credentials = new AgentCredentials(store)
  await credentials.set(entryOf(), 'one')
  await credentials.set(entryOf(), 'two')
  expect(credentials.of(entryOf({ url: 'https://a.test/other' }))).toMatchObject({ token: 'two' })
  expect(credentials.of(entryOf({ url: 'https://b.test/' }))).toBeUndefined()
  const other = new AgentCredentials(store)
  await other.load()
  expect(other.of(entryOf())).toMatchObject({ token: 'two' })
  await credentials.remove('id')
  await other.load()
  expect(other.of(entryOf())).toBeUndefined()
})

test('a credential that is set while the others are read is kept', async () => {
  const store = memoryStore()
  const credentials = new AgentCredentials(store)
  const { list } = store
  store.list = async () => {
    const before = await list()
    await credentials.set(entryOf(), 'new')
    return before
  }
  await credentials.load()
  expect(credentials.of(entryOf())).toMatchObject({ token: 'new' })
})

test('a credential that cannot be used is refused without its value', async () => {
  const credentials = new AgentCredentials(memoryStore())
  const security: ForeignInterface['security'] = [{ kind: 'apiKey', in: 'header', name: 'k' }]
  const refused = await credentials.set(entryOf({ security }), 'SECRET\r\n').catch((error: unknown) => error)
  expect(refused).toMatchObject({ error: 'InvalidParams' })
  expect(JSON.stringify(refused)).not.toContain('SECRET')
  await expect(credentials.set(entryOf({ security: [oauth2] }), 'SECRET')).rejects.toMatchObject({
    error: 'InvalidParams',
  })
  await expect(credentials.set({ ...entryOf(), relay: undefined } as never, 'T')).rejects.toMatchObject({
    data: { reason: 'not_relayed' },
  })
})

describe('a card with several schemes', () => {
  const security: ForeignInterface['security'] = [
    { scheme: 'jwt', kind: 'bearer' },
    { scheme: 'login', ...oauth2 },
    { scheme: 'key', kind: 'apiKey', in: 'header', name: 'X-Key' },
  ]
  const setFor = async (schemes: ForeignInterface['security'], text: string, scheme?: string) => {
    const credentials = new AgentCredentials(memoryStore())
    await credentials.set(entryOf({ security: schemes }), text, scheme)
    return credentials.of(entryOf({ security: schemes }))
  }

  test('the only scheme that the credential fits is used', async () => {
    expect(await setFor(security.slice(0, 2), 'a.b.c')).toEqual({ kind: 'bearer', token: 'a.b.c' })
    expect(await setFor(security.slice(0, 2), 'me:s')).toMatchObject({ kind: 'oauth2', clientId: 'me' })
  })

  test('of several, the operator names one', async () => {
    expect(await setFor(security, 'me:s', 'key')).toMatchObject({ kind: 'apiKey', value: 'me:s' })
    await expect(setFor(security, 'SECRET')).rejects.toMatchObject({
      data: {
        issues: [
          {
            path: 'credential',
            message:
              'The credential fits several of the schemes of the card: jwt (bearer token), login (client-id:client-secret), key (API key). Name one as the scheme',
          },
        ],
      },
    })
    await expect(setFor(security, 'SECRET', 'other')).rejects.toMatchObject({
      data: { issues: [{ path: 'scheme' }] },
    })
  })
})

function entryOf(relay: Partial<ForeignInterface> = {}): AgentEntry {
  const whole = {
    url: 'https://a.test/',
    dialect: 'a2a-v1',
    streaming: false,
    security: [],
    unsupportedSecurity: false,
  }
  return { id: 'id', slug: 'a', relay: { ...whole, ...relay } } as unknown as AgentEntry
}

function memoryStore() {
  const entries = new Map<string, Record<string, unknown>>()
  return {
    upsert: async ({ id, payload }: { id: string; payload: Record<string, unknown> }) =>
      void entries.set(id, payload),
    list: async () => [...entries.values()],
    destroy: async (_model: string, id: string) => void entries.delete(id),
  }
}
