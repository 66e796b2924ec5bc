import type { ForeignInterface } from '@parley/wire/codecs/foreign-card'
import { expect, test } from 'vitest'
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
