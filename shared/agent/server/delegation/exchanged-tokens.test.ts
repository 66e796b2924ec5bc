import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ExchangedTokens } from './exchanged-tokens.ts'

interface Received {
  url: string
  authorization: string | undefined
  form: Record<string, string>
}

let server: Server
let url: string
let received: Received[]
/** The answers to exchanges, by path. */
let answers: Record<string, { status: number; body: object }>
let ownToken: string

beforeEach(async () => {
  received = []
  ownToken = 'own-1'
  answers = {
    '/oauth2/token': { status: 200, body: { access_token: 'pdt_1', expires_in: 300 } },
    '/provider/token': { status: 200, body: { access_token: 'exchanged', expires_in: 300 } },
  }
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
      const { url: path = '', headers } = request
      received.push({ url: path, authorization: headers.authorization, form })
      const own = { status: 200, body: { access_token: ownToken, expires_in: 300 } }
      const isOwn = form['grant_type'] === 'client_credentials'
      const { status, body } = isOwn ? own : (answers[path] ?? { status: 404, body: {} })
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
/** A statement; only the gateway checks its signature. */
const statement = (claims: object = {}) =>
  `${encoded({ alg: 'EdDSA', typ: 'parley-statement+jwt' })}.${encoded({ iss: 'https://gateway.example', ...claims })}.AA`
const tokens = (resource: string | (() => Promise<string>) = 'https://resource.example') =>
  new ExchangedTokens({
    tokenUrl: `${url}/provider/token`,
    clientId: 'agent',
    clientSecret: 'the secret',
    resource,
    gatewayUrl: `${url}/`,
  })
const exchanges = () => received.filter(({ form }) => form['grant_type'] !== 'client_credentials')

test('the gateway exchanges a statement, and the agent authenticates with its own token', async () => {
  const text = statement()
  expect(await tokens().get(text)).toBe('pdt_1')
  expect(received).toEqual([
    {
      url: '/provider/token',
      authorization: undefined,
      form: {
        grant_type: 'client_credentials',
        scope: 'agent:read agent:write',
        client_id: 'agent',
        client_secret: 'the secret',
      },
    },
    {
      url: '/oauth2/token',
      authorization: 'Bearer own-1',
      form: {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: text,
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        resource: 'https://gateway.example',
      },
    },
  ])
})

test('the OAuth server exchanges every other token', async () => {
  expect(await tokens().get('opaque')).toBe('exchanged')
  expect(received).toMatchObject([
    { url: '/provider/token', form: { subject_token: 'opaque', resource: 'https://resource.example' } },
  ])
})

test('the name of the gateway is read until it is known', async () => {
  const names: (() => Promise<string>)[] = [
    async () => 'https://gateway.example',
    () => Promise.reject(new Error('the gateway’s keys cannot be read')),
  ]
  const exchanged = tokens(() => names.pop()?.() ?? Promise.reject(new Error('read too often')))
  await expect(exchanged.get('one')).rejects.toThrow('cannot be read')
  await exchanged.get('one')
  await exchanged.get('two')
  expect(exchanges().map(({ form }) => form['resource'])).toEqual(
    Array.from({ length: 2 }, () => 'https://gateway.example'),
  )
})

test('concurrent and later callers share one exchange of a statement', async () => {
  const exchanged = tokens()
  const text = statement()
  await Promise.all([exchanged.get(text), exchanged.get(text)])
  await exchanged.get(text)
  expect(exchanges()).toHaveLength(1)
  exchanged.forget(text)
  await exchanged.get(text)
  expect(exchanges()).toHaveLength(2)
})

describe('the gateway refuses', () => {
  test('the agent’s own token: the agent requests a new one, and tries again', async () => {
    answers['/oauth2/token'] = {
      status: 401,
      body: { error: 'invalid_client', error_description: 'The token is not active' },
    }
    const attempt = tokens().get(statement())
    await expect(attempt).rejects.toMatchObject({
      name: 'ExchangeRefusedError',
      message: 'The token is not active',
    })
    expect(received.map(({ url: path }) => path)).toEqual([
      '/provider/token',
      '/oauth2/token',
      '/provider/token',
      '/oauth2/token',
    ])
  })
  test('the statement, with its reason', async () => {
    answers['/oauth2/token'] = {
      status: 400,
      body: { error: 'invalid_request', error_description: 'The token is not active: get a new one' },
    }
    await expect(tokens().get(statement())).rejects.toMatchObject({
      name: 'ExchangeRefusedError',
      message: 'The token is not active: get a new one',
    })
  })
  test('every exchange, because it is older', async () => {
    delete answers['/oauth2/token']
    await expect(tokens().get(statement())).rejects.toMatchObject({
      name: 'ExchangeRefusedError',
      message: 'the gateway does not exchange its statements: update the gateway',
    })
  })
  test.each([429, 503])('with %s, which is not the end of the authority', async (status) => {
    answers['/oauth2/token'] = { status, body: { error: { code: -32042, message: 'unavailable' } } }
    await expect(tokens().get(statement())).rejects.toMatchObject({
      name: 'Error',
      message: `the token endpoint returned ${status}`,
    })
  })
})
