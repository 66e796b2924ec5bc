import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { readPublicKey } from '@parley/kit/auth/client-keys'
import { checkSignedBy } from '@parley/kit/auth/did-signature'
import { agentIdentity } from '@parley/kit/did/identity'
import { rotateKeys } from '@parley/kit/did/key-file'
import { isLinked } from '@parley/kit/did/key-link'
import { expect, test } from 'vitest'
import { ownClient } from './own-client.ts'

/** Verifies a request with the key and the DID that the request registers. */
function isSigned(headers: IncomingHttpHeaders, text: Buffer, body: Record<string, unknown>): boolean {
  const key = readPublicKey(String(body['public_key']))
  checkSignedBy({ headers, body: text, clientId: String(body['client_id']) }, key ?? Buffer.alloc(32))
  return true
}

/** An OAuth server that registers every client and records the requests. */
async function registrar(answer?: string) {
  const told: { method: string | undefined; body: Record<string, unknown>; isSigned: boolean }[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks)
      const body = JSON.parse(text.toString()) as Record<string, unknown>
      told.push({ method: request.method, body, isSigned: isSigned(request.headers, text, body) })
      const made = { client_secret: 's', registration_client_uri: url, registration_access_token: 't' }
      response.end(answer ?? JSON.stringify({ ...body, ...made }))
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const dir = await mkdtemp(path.join(tmpdir(), 'parley-own-client-'))
  const keyFile = path.join(dir, 'agent.key.json')
  const ask = async () => {
    const { did, key, document } = await agentIdentity('bob', keyFile)
    return ownClient({
      issuer: url,
      endpoint: async () => url,
      initialToken: 'initial',
      did,
      key,
      keyHistory: document.keyHistory,
      name: 'bob',
      file: path.join(dir, 'oauth-client.json'),
    })
  }
  return {
    told,
    keyFile,
    dir,
    ask,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      await rm(dir, { recursive: true })
    },
  }
}

test('after a key rotation, the agent registers the new key with the chain of signatures', async () => {
  await using server = await registrar()
  const first = await server.ask()
  expect(server.told[0]).toMatchObject({
    method: 'POST',
    body: { client_id: first?.clientId, issuer: expect.stringMatching(/^http:/) },
    isSigned: true,
  })
  expect(server.told[0]?.body).not.toHaveProperty('key_history')
  const { history } = await rotateKeys(server.keyFile)
  expect(await server.ask()).toEqual(first)
  const { method, body, isSigned } = server.told[1] ?? {}
  expect([method, isSigned]).toEqual(['PUT', true])
  expect(body).toMatchObject({ public_key: history.at(-1)?.publicKeyBase58, key_history: history })
  expect(isLinked(body?.['key_history'] as typeof history)).toBe(true)
  await server.ask()
  expect(server.told).toHaveLength(2)
})

test('the agent does not read an oversized answer completely and stores nothing', async () => {
  await using server = await registrar(`"${'x'.repeat(100_000)}"`)
  await expect(server.ask()).rejects.toThrow('larger than')
  await expect(readFile(path.join(server.dir, 'oauth-client.json'))).rejects.toThrow('ENOENT')
})

test('a client file that other users can read is refused with a message that suggests chmod', async () => {
  await using server = await registrar()
  await server.ask()
  const file = path.join(server.dir, 'oauth-client.json')
  await chmod(file, 0o644)
  await expect(server.ask()).rejects.toThrow(`Run "chmod 600 ${file}"`)
})
