import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { rpc } from '@parley/tools/testing/raw-http'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { testAgent } from '../testing.ts'

const publicUrl = 'https://agent.example'

/** Returns a token that is bound to a new key, and a function that signs proofs with this key. */
async function boundToken(identityProvider: TestIdentityProvider) {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  const token = identityProvider.issue('alice', { cnf: { jkt: await calculateJwkThumbprint(jwk) } })
  const ath = createHash('sha256').update(token).digest('base64url')
  const proof = (htu: string) =>
    new SignJWT({ htm: 'POST', htu, ath, jti: crypto.randomUUID() })
      .setIssuedAt()
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .sign(privateKey)
  return { token, proof }
}

test('a proof that an agent has accepted is refused by its next process', async () => {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'parley-agent-'))
  await using identityProvider = await TestIdentityProvider.start()
  const start = () =>
    testAgent({ handle: () => 'done' }, { dataDir, identityProvider, env: { PUBLIC_URL: publicUrl } })
  const { token, proof } = await boundToken(identityProvider)
  const dpop = await proof(`${publicUrl}/`)
  const send = async (agent: Awaited<ReturnType<typeof start>>, used: string) => {
    const headers = { authorization: `DPoP ${token}`, dpop: used }
    const { status, json } = await rpc(agent, 'tasks/list', {}, { token: undefined, headers })
    return [status, json.error?.data.reason]
  }
  {
    await using agent = await start()
    expect(await send(agent, dpop)).toEqual([200, undefined])
    expect(await send(agent, dpop)).toEqual([401, 'proof_replayed'])
  }
  await using agent = await start()
  expect(await send(agent, dpop)).toEqual([401, 'proof_replayed'])
  expect(await send(agent, await proof(`${publicUrl}/`))).toEqual([200, undefined])
  expect(await send(agent, await proof(`${agent.url}/`))).toEqual([401, 'proof_url_mismatch'])
  await rm(dataDir, { recursive: true, force: true })
})
