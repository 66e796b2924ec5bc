import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startFaultyProxy } from '@parley/tools/testing/faulty-proxy'
import { expect, test } from 'vitest'
import { ClientToken } from './client-token.ts'

const client = { clientId: 'did:parley:bob:agent:1', clientSecret: 's: %', scope: 'agent:read' }

/** A token endpoint that returns this status and records the submitted forms. */
async function tokenEndpoint(status = 200, expiresIn = 60) {
  const forms: Record<string, string>[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      forms.push(Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString())))
      response.writeHead(status).end(`{"access_token":"t","expires_in":${expiresIn}}`)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    tokenUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    forms,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

test('a token for one server is requested with `resource` (RFC 8707) and `audience` (Ory Hydra)', async () => {
  await using server = await tokenEndpoint()
  const resource = 'https://agents.example/a?b=c&d'
  expect(await new ClientToken({ ...client, ...server, resource }).get()).toBe('t')
  expect(server.forms[0]).toEqual({
    grant_type: 'client_credentials',
    client_id: client.clientId,
    client_secret: client.clientSecret,
    scope: 'agent:read',
    resource,
    audience: resource,
  })
})

test('a token requested without a resource is valid for every server', async () => {
  await using server = await tokenEndpoint()
  await new ClientToken({ ...client, ...server }).get()
  expect(Object.keys(server.forms[0] ?? {}).sort()).toEqual([
    'client_id',
    'client_secret',
    'grant_type',
    'scope',
  ])
})

test('a token with a lifetime below one second is used once', async () => {
  await using server = await tokenEndpoint(200, 0)
  const tokens = new ClientToken({ ...client, ...server })
  expect([await tokens.get(), await tokens.get()]).toEqual(['t', 't'])
  expect(server.forms).toHaveLength(2)
})

test('requests are suspended after several consecutive connection failures', async () => {
  await using proxy = await startFaultyProxy('http://127.0.0.1:1/token')
  proxy.fault = 'down'
  const token = new ClientToken({ ...client, tokenUrl: proxy.url })
  for (let i = 0; i < 5; i += 1) await expect(token.get()).rejects.toThrow(/./)
  const before = proxy.requests
  for (let i = 0; i < 20; i += 1) await expect(token.get()).rejects.toThrow(/./)
  expect(proxy.requests).toBe(before)
})

test.each([400, 500])('status %i of the OAuth server does not suspend requests', async (status) => {
  await using server = await tokenEndpoint(status)
  const refused = new ClientToken({ ...client, ...server })
  for (let i = 0; i < 8; i += 1) await expect(refused.get()).rejects.toThrow(String(status))
  expect(server.forms).toHaveLength(8)
})
