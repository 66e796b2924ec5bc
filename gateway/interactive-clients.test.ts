import { readFile } from 'node:fs/promises'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import { selfSigned } from '@parley/tools/testing/certificate'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Browser, requestsTo, s256 } from './oauth/testing.ts'
import { alice, RegistrationGateway } from './registration/testing.ts'

const redirectUri = 'http://127.0.0.1:45678/callback'
const { cert, key } = selfSigned(['127.0.0.1'])

let deployment: RegistrationGateway
let documents: https.Server
let reads: number
let clientId: string
beforeEach(async () => {
  deployment = await RegistrationGateway.open()
  reads = 0
  documents = https.createServer({ cert, key }, (_request, response) => {
    reads += 1
    const document = { client_id: clientId, ...metadata }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(document))
  })
  await new Promise<void>((done) => documents.listen(0, '127.0.0.1', done))
  clientId = `https://127.0.0.1:${(documents.address() as AddressInfo).port}/client.json`
})
afterEach(async () => {
  documents.closeAllConnections()
  documents.close()
  await deployment[Symbol.asyncDispose]()
})
const origin = () => deployment.gateway.addresses.public

const metadata = {
  client_name: 'Example host',
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_method: 'none',
}

/** An MCP host with a person at its browser, who approves with the sign-in code. */
class Host implements OAuthClientProvider {
  readonly redirectUrl = redirectUri
  readonly clientMetadata = metadata
  readonly clientMetadataUrl?: string
  /** The authorization requests that were opened in the browser. */
  readonly opened: URL[] = []
  response = new URLSearchParams()
  #client: Awaited<ReturnType<OAuthClientProvider['clientInformation']>>
  #tokens: Awaited<ReturnType<OAuthClientProvider['tokens']>>
  #discovered: Awaited<ReturnType<NonNullable<OAuthClientProvider['discoveryState']>>>
  #verifier = ''

  constructor(documentUrl?: string) {
    if (documentUrl !== undefined) this.clientMetadataUrl = documentUrl
  }

  clientInformation = () => this.#client
  saveClientInformation: NonNullable<OAuthClientProvider['saveClientInformation']> = (client) => {
    this.#client = client
  }
  tokens = () => this.#tokens
  saveTokens: OAuthClientProvider['saveTokens'] = (tokens) => {
    this.#tokens = tokens
  }
  saveDiscoveryState: NonNullable<OAuthClientProvider['saveDiscoveryState']> = (state) => {
    this.#discovered = state
  }
  discoveryState = () => this.#discovered
  saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier
  }
  codeVerifier = () => this.#verifier

  async redirectToAuthorization(address: URL): Promise<void> {
    this.opened.push(address)
    this.response = (await approve(address.href)).searchParams
  }
}

/** Opens an authorization request and approves it. Returns the address to which the browser is sent. */
async function approve(address: string): Promise<URL> {
  const file = path.join(deployment.folder, 'data', 'oauth', 'sign-in-code')
  const code = (await readFile(file, 'utf8')).trim()
  const browser = new Browser({ origin: origin(), fetch: requestsTo(origin()) })
  const location = async (at: string, form?: Record<string, string>) =>
    (await browser.go(at, form)).headers.get('location') ?? ''
  const page = await location(address)
  return new URL(await location(await location(page, { decision: 'approve', code })))
}

/** Connects an MCP client, which the person approves at the first attempt. */
async function connect(host: Host, endpoint: string): Promise<Client> {
  const url = new URL(`${origin()}${endpoint}`)
  const first = new StreamableHTTPClientTransport(url, { authProvider: host })
  const client = () => new Client({ name: 'host', version: '1' })
  await expect(client().connect(first)).rejects.toThrow(UnauthorizedError)
  await first.finishAuth(host.response)
  const connected = client()
  await connected.connect(new StreamableHTTPClientTransport(url, { authProvider: host }))
  return connected
}

/** Registers and admits an agent that completes each message. */
async function startPoet() {
  const task = (id: unknown) => ({
    jsonrpc: '2.0',
    id,
    result: {
      id: crypto.randomUUID(),
      context_id: crypto.randomUUID(),
      kind: 'task',
      status: { state: 'completed', timestamp: '2026-11-22T12:00:00.000Z' },
      history: [],
      artifacts: [
        { artifact_id: crypto.randomUUID(), name: 'poem', parts: [{ kind: 'text', text: 'roses are red' }] },
      ],
    },
  })
  const agent = await deployment.serveAgent({
    identity: alice,
    name: 'poet',
    card: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    otherwise: (_url, body) => task((JSON.parse(body) as { id: unknown }).id),
  })
  await deployment.join(agent.url, await deployment.registered(alice), alice)
  await deployment.send('POST', '/registry/agents/poet/admit', await deployment.operator())
  return agent
}

test('an MCP host with a metadata document finds the OAuth server, is approved, and calls an agent', async () => {
  await deployment.start({}, { ca: cert })
  const poet = await startPoet()
  const host = new Host(clientId)
  const client = await connect(host, '/mcp')
  const [opened] = host.opened
  expect(opened?.searchParams.get('client_id')).toBe(clientId)
  expect(opened?.searchParams.get('resource')).toBe(`${origin()}/mcp`)
  expect(opened?.searchParams.get('scope')).toBe('agent:read agent:write')
  const { tools } = await client.listTools()
  const tool = tools.find(({ name }) => name.includes('poet'))
  const result = await client.callTool({ name: tool?.name ?? '', arguments: { text: 'write' } })
  expect(JSON.stringify(result)).toContain('roses are red')
  const token = poet.calls.find(({ url }) => url === '/')?.authorization
  expect(token).toMatch(/^Bearer pxt_/)
  const reused = await fetch(`${origin()}/`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${host.tokens()?.access_token}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/list', params: {} }),
  })
  expect(reused.status).toBe(401)
  await client.close()
})

test('an MCP host without a document registers, and its token for one agent is refused at the others', async () => {
  await deployment.start()
  await startPoet()
  const host = new Host()
  const client = await connect(host, '/agents/poet/mcp')
  expect(host.opened[0]?.searchParams.get('resource')).toBe(`${origin()}/agents/poet/mcp`)
  expect((await client.listTools()).tools.length).toBeGreaterThan(0)
  const statusAt = async (endpoint: string) => {
    const headers = {
      authorization: `Bearer ${host.tokens()?.access_token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    return (await fetch(`${origin()}${endpoint}`, { method: 'POST', headers, body })).status
  }
  expect([await statusAt('/mcp'), await statusAt('/agents/other/mcp')]).toEqual([401, 401])
  await client.close()
})

test('a metadata document at a private address is not read', async () => {
  await deployment.start({ REGISTRY_ALLOWED_HOSTS: '192.0.2.1' }, { ca: cert })
  const parameters = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: redirectUri,
    code_challenge: s256('v'.repeat(43)),
    code_challenge_method: 'S256',
  })
  const { status, text } = await requestsTo(origin())(`/oauth2/authorize?${parameters.toString()}`)
  expect([status, reads]).toEqual([400, 0])
  expect(text).toContain('Ask the developer of the application')
})

test('in production, documents are accepted and registrations without a token are not', async () => {
  await deployment.start({ NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes' })
  const { body } = await requestsTo(origin())('/.well-known/oauth-authorization-server/oauth2')
  expect(body).toMatchObject({ client_id_metadata_document_supported: true })
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  }
  expect((await requestsTo(origin())('/oauth2/register', init)).status).toBe(401)
})

test('with an external OAuth server, the metadata names that server, and there is no approval page', async () => {
  const issuer = 'http://127.0.0.1:9/realms/main'
  await deployment.start({
    OAUTH_ISSUER: issuer,
    OAUTH_INTROSPECTION_URL: 'http://127.0.0.1:9/introspect',
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_CLIENT_SECRET: 'secret',
  })
  const at = requestsTo(origin())
  const { body } = await at('/.well-known/oauth-protected-resource/mcp')
  expect(body).toMatchObject({ resource: `${origin()}/mcp`, authorization_servers: [issuer] })
  const { status, headers } = await at('/mcp', { method: 'POST' })
  expect([status, headers.get('www-authenticate')]).toEqual([
    401,
    `Bearer resource_metadata="${origin()}/.well-known/oauth-protected-resource/mcp", scope="agent:read agent:write"`,
  ])
  for (const path of ['/oauth2/authorize', '/.well-known/oauth-authorization-server'])
    expect((await at(path)).status).toBe(404)
})
