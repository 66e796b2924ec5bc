import { expect, test } from 'vitest'
import { startIdentityProvider, temporaryFolder } from '../testing.ts'
import { oidcAdapter } from './adapter.ts'

test('the second use of a code is refused and revokes the grant', async () => {
  await using folder = await temporaryFolder()
  await using server = await startIdentityProvider({ dir: folder.dir })
  const adapter = oidcAdapter(server.store)
  const [codes, tokens, grants] = ['AuthorizationCode', 'AccessToken', 'Grant'].map(adapter)
  await grants?.upsert('g', { clientId: 'c' }, 60)
  await codes?.upsert('code', { jti: 'code', grantId: 'g' }, 60)
  await tokens?.upsert('token', { jti: 'token', grantId: 'g' }, 60)
  expect(await codes?.find('code')).toMatchObject({ jti: 'code' })
  await codes?.consume('code')
  expect(await tokens?.find('token')).toBeDefined()
  await expect(codes?.consume('code')).rejects.toMatchObject({ error: 'invalid_grant' })
  expect(await tokens?.find('token')).toBeUndefined()
  expect(await grants?.find('g')).toBeUndefined()
})
