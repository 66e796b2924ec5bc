import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { raw, rpc } from '@parley/tools/testing/raw-http'
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
  const proof = (htu: string, htm = 'POST') =>
    new SignJWT({ htm, htu, ath, jti: crypto.randomUUID() })
      .setIssuedAt()
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .sign(privateKey)
  return { token, proof }
}

test.each([
  ['POST', '/a2a/v1'],
  ['POST', '/a2a/v0.3/'],
  ['POST', '/message:send'],
  ['GET', '/a2a/v1/tasks?pageSize=1'],
])('a bound token is accepted at %s %s with a proof for this method and URL only', async (method, at) => {
  await using agent = await testAgent({ handle: () => 'done' }, { env: { PUBLIC_URL: publicUrl } })
  const { token, proof } = await boundToken(agent.identityProvider)
  const status = async (htu: string, htm = method) => {
    const headers = { authorization: `DPoP ${token}`, dpop: await proof(htu, htm) }
    const answer = await raw(agent, { method, path: at, headers, ...(method === 'POST' && { body: '{}' }) })
    return answer.status
  }
  const [url = ''] = `${publicUrl}${at}`.split('?')
  expect(await status(url)).not.toBe(401)
  expect(await status(`${publicUrl}/`)).toBe(401)
  expect(await status(url, 'PUT')).toBe(401)
})

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
