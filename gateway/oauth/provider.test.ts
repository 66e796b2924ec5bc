import { createHash } from 'node:crypto'
import { type Credentials, type ProviderUnderTest, providerCases } from '@parley/kit/auth/provider.cases'
import { describe } from 'vitest'
import { startIdentityProvider, temporaryFolder } from './testing.ts'

async function underTest(): Promise<ProviderUnderTest> {
  const folder = await temporaryFolder()
  const server = await startIdentityProvider({ dir: folder.dir })
  const { provider, store } = server
  const { issuer } = provider
  const scope = 'agent:read agent:write'
  const client = (clientId: string, more: { publicKey?: string; introspection?: boolean } = {}) =>
    provider.ensureClient({ clientId, clientName: 'a client', scope, ...more })
  return {
    issuer,
    introspectionUrl: undefined,
    introspectionEndpoint: `${issuer}/introspect`,
    tokenUrl: `${issuer}/token`,
    checker: await client('did:parley:carol:agent:1', { introspection: true }),
    client: ({ clientId, publicKey }) => client(clientId, publicKey === undefined ? {} : { publicKey }),
    revoke: async (token: string, as: Credentials) => {
      await server.post('/oauth2/revoke', { token }, as)
    },
    expiredToken: async () => {
      const token = await server.token(await client('expired'))
      const id = createHash('sha256').update(token).digest('base64url')
      const payload = await store.find('ClientCredentials', id)
      const exp = Math.floor(Date.now() / 1000) - 10
      if (payload === undefined) throw new Error('the token is elsewhere')
      await store.upsert({ model: 'ClientCredentials', id, payload: { ...payload, exp }, expiresAt: exp })
      return token
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

describe('the embedded OAuth server', () => {
  providerCases(underTest, { authenticatesCheckers: true })
})
