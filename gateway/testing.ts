import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import type { Introspection } from '@parley/kit/auth/introspection'
import { makeDid } from '@parley/kit/did/did'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { makeLog } from '@parley/kit/process/log'
import { freePort } from '@parley/tools/testing/port'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { z } from 'zod'
import { type GatewayApp, type GatewayAppOptions, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'

let folder: string
let running: GatewayApp
let provider: TestIdentityProvider
let startOptions: Pick<GatewayAppOptions, 'testInterface'> = {}
const open: (() => unknown)[] = []

/** Starts a gateway and an OAuth server before each test in the file. */
export function gatewayForEachTest(env: Env = {}, more: MoreOptions = {}): void {
  beforeEach(() => startAll(env, more))
  afterEach(stopAll)
}

/** Starts a gateway and an OAuth server for all tests of the file, which is faster. */
export function gatewayForAllTests(env: Env = {}, more: MoreOptions = {}): void {
  beforeAll(() => startAll(env, more))
  afterAll(stopAll)
}

type Env = Record<string, string>
type MoreOptions = Pick<GatewayAppOptions, 'testInterface'>

async function startAll(env: Env, more: MoreOptions): Promise<void> {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-routing-'))
  provider = await TestIdentityProvider.start()
  // The provider may reuse the port of an earlier provider that issued the cached tokens.
  tokenOf.clear()
  startOptions = more
  running = await start(env)
}

async function stopAll(): Promise<void> {
  await running[Symbol.asyncDispose]()
  while (open.length > 0) await open.pop()?.()
  await provider[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
}

/** Settings for `gatewayForEachTest` with which the gateway runs its own OAuth server. */
export const embeddedOAuth = {
  OAUTH_ISSUER: '',
  OAUTH_INTROSPECTION_URL: '',
  OAUTH_CLIENT_ID: '',
  OAUTH_CLIENT_SECRET: '',
}

interface TokenRequest {
  scope?: string
  resource?: string
}

/** A client of the gateway's own OAuth server. */
export interface OAuthClient {
  id: string
  secret: string
  /** Requests a token with client credentials. */
  token(more?: TokenRequest): Promise<string>
  revoke(token: string): Promise<void>
  /** Introspects a token. The client must belong to an admitted agent. */
  introspect(token: string): Promise<Introspection>
  /** Exchanges a token (RFC 8693). The client must belong to an admitted agent. */
  exchange(form: { subject_token: string; resource: string; scope?: string }): Promise<string>
}

const tokenAnswer = z.object({ access_token: z.string() })

/** Registers a client at the gateway's own OAuth server. */
export async function oauthClient(name: string, metadata: object = {}): Promise<OAuthClient> {
  return register({ client_name: name, ...metadata }, () => ({}))
}

/** Registers a client whose id is a DID. The client of an admitted agent may introspect and exchange tokens. */
export async function didClient(name: string): Promise<OAuthClient> {
  const key = keyPairFromSeed(createHash('sha256').update(name).digest())
  const did = makeDid({ author: 'ann', name, publicKey: key.publicKey })
  const issuer = `${running.addresses.public}/oauth2`
  const metadata = { client_id: did, client_name: name, issuer, public_key: key.publicKeyBase58 }
  return register(metadata, (body) => ({ ...signRequest({ did, key, body }) }))
}

async function register(metadata: object, sign: (body: string) => Record<string, string>) {
  const initial = await readFile(path.join(folder, 'data', 'oauth', 'initial-access-token'), 'utf8')
  const body = JSON.stringify({ grant_types: ['client_credentials'], ...metadata })
  const response = await fetch(`${running.addresses.public}/oauth2/register`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${initial.trim()}`,
      'content-type': 'application/json',
      ...sign(body),
    },
    body,
  })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return clientOf(JSON.parse(text))
}

/** The client of the operator, which may request agent:admin. */
export async function operatorClient(): Promise<OAuthClient> {
  return clientOf(
    JSON.parse(await readFile(path.join(folder, 'data', 'oauth', 'operator-client.json'), 'utf8')),
  )
}

function clientOf(given: unknown): OAuthClient {
  const client = z.object({ client_id: z.string(), client_secret: z.string() }).parse(given)
  const credentials = [client.client_id, client.client_secret].map(encodeURIComponent).join(':')
  const headers = { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
  const send = async (route: string, form: Record<string, string>) => {
    const url = `${running.addresses.public}/oauth2/${route}`
    const response = await fetch(url, { method: 'POST', headers, body: new URLSearchParams(form) })
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    return text
  }
  return {
    id: client.client_id,
    secret: client.client_secret,
    async token(more = {}) {
      const form = { grant_type: 'client_credentials', scope: 'agent:read agent:write', ...more }
      return tokenAnswer.parse(JSON.parse(await send('token', form))).access_token
    },
    async revoke(token) {
      await send('revoke', { token })
    },
    introspect: async (token) => JSON.parse(await send('introspect', { token })) as Introspection,
    async exchange(more) {
      const type = 'urn:ietf:params:oauth:token-type:access_token'
      const form = { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token_type: type }
      return tokenAnswer.parse(JSON.parse(await send('token', { ...form, ...more }))).access_token
    },
  }
}

export const gateway = (): GatewayApp => running
export const identityProvider = (): TestIdentityProvider => provider

/** Restarts the gateway with the same data, optionally with the agents in a folder. */
export async function restart(env: Record<string, string> = {}, agentsDir?: string): Promise<void> {
  await running[Symbol.asyncDispose]()
  running = await start(env, agentsDir)
}

async function start(env: Record<string, string>, agentsDir?: string): Promise<GatewayApp> {
  const settings = gatewayConfig({
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: path.join(folder, 'data'),
    OAUTH_ISSUER: provider.url,
    OAUTH_INTROSPECTION_URL: provider.url,
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_CLIENT_SECRET: 'secret',
    ...env,
  })
  const log = makeLog({ level: 'silent', name: 'test' })
  return startGatewayApp({ settings, log, ...startOptions, ...(agentsDir !== undefined && { agentsDir }) })
}

export interface Call {
  method: string
  params: Record<string, unknown>
  url: string | undefined
  headers: http.IncomingHttpHeaders
  body: string
  response: http.ServerResponse
  id: unknown
}

/** An agent over real HTTP with scripted responses. By default, it accepts messages and knows its tasks. */
export class FakeAgent {
  readonly calls: Call[] = []
  readonly tasks = new Map<
    string,
    { id: string; context_id: string; status: { state: string; timestamp: string } }
  >()
  on: Record<string, (call: Call) => unknown> = {}
  readonly #senders = new Map<string, string | undefined>()
  /** Returns the response to a GET or a DELETE. It may set the status and headers of the response, or send it later itself. */
  get:
    | ((
        path: string,
        request: http.IncomingMessage,
        response: http.ServerResponse,
      ) => object | 'later' | undefined)
    | undefined
  readonly #server = http.createServer((request, response) => void this.#serve(request, response))
  slug = ''
  port = 0

  async listen(port?: number): Promise<void> {
    this.#server.listen(port ?? (await freePort()), '127.0.0.1')
    await once(this.#server, 'listening')
    this.port = (this.#server.address() as AddressInfo).port
    open.push(() => this.stop())
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async register(name: string, description: string, more: object = {}): Promise<this> {
    if (this.port === 0) await this.listen()
    const skill = {
      id: name,
      name,
      description,
      tags: [],
      input_modes: ['text/plain'],
      output_modes: ['text/plain'],
    }
    const entry = await running.registry.register({
      name,
      description,
      url: `http://127.0.0.1:${this.port}`,
      card: { name, description },
      skills: [skill],
      owner: name,
      origin: 'supervised',
      verified: true,
      admitted: true,
      admittedBy: 'supervisor',
      ...more,
    })
    this.slug = entry.slug
    return this
  }

  sent(method = 'message/send'): Call[] {
    return this.calls.filter((call) => call.method === method)
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    if (request.method !== 'POST') {
      const answer = this.get?.(request.url ?? '', request, response) ?? {}
      return void (answer === 'later' || response.end(JSON.stringify(answer)))
    }
    // Calls without a JSON-RPC envelope are named by their path.
    const {
      method = request.url?.split('?')[0] ?? '',
      params = {},
      id,
    } = JSON.parse(body || '{}') as Partial<Call>
    const call = { method, params, id, url: request.url, headers: request.headers, body, response }
    this.calls.push(call)
    const result = this.on[method] === undefined ? this.#answer(call) : await this.on[method]?.(call)
    if (response.writableEnded || response.destroyed || response.headersSent) return
    if (result === undefined) return fail(response, id, 404, -32001, {})
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }

  #answer({ method, params, headers }: Call): unknown {
    if (method === 'message/send') {
      const task = this.take(params) as { id: string }
      this.#senders.set(task.id, headers.authorization)
      return task
    }
    const id = (params['task_id'] ?? params['id']) as string
    if (method === 'tasks/list') return this.#list(params, headers.authorization)
    if (method === 'tasks/feedback') return { success: true, task_id: id }
    if (method === 'contexts/clear') {
      for (const one of this.#list(params, headers.authorization)) this.tasks.delete(one.id)
      return { success: true }
    }
    return this.tasks.get(id)
  }

  #list(params: Record<string, unknown>, sender: string | undefined) {
    const context = params['context_id']
    return [...this.tasks.values()]
      .filter((task) => context === undefined || task.context_id === context)
      .filter(({ id }) => (this.#senders.get(id) ?? sender) === sender)
      .reverse()
  }

  take(params: Record<string, unknown>, at = new Date().toISOString()): object {
    const message = params['message'] as Record<string, string>
    const task = {
      id: message['taskId'] ?? crypto.randomUUID(),
      context_id: message['contextId'] ?? crypto.randomUUID(),
      kind: 'task',
      status: { state: 'submitted', timestamp: at },
    }
    this.tasks.set(task.id, task)
    return task
  }
}

export function fail(
  response: http.ServerResponse,
  id: unknown,
  status: number,
  code: number,
  data: object,
): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'no', data } }))
}

export const agent = (name: string, description: string, more?: object) =>
  new FakeAgent().register(name, description, more)

const tokenOf = new Map<string, string>()
export function bearer(client: string, scope = 'agent:read agent:write'): string {
  const key = `${client} ${scope}`
  const token = tokenOf.get(key) ?? provider.issue(client, { scope })
  tokenOf.set(key, token)
  return `Bearer ${token}`
}

export async function post(route: string, body: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${running.addresses.public}${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: bearer('alice'), ...headers },
    body,
  })
  const text = await response.text()
  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  const json = (text.startsWith('{') ? JSON.parse(text) : {}) as any
  return { status: response.status, headers: response.headers, text, json }
}

export const call = (method: string, params: object, headers?: Record<string, string>) =>
  post('/', JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params }), headers)

export function saying(text: string, more: object = {}, configuration?: object) {
  const message = {
    role: 'user',
    kind: 'message',
    messageId: crypto.randomUUID(),
    parts: [{ kind: 'text', text }],
    ...more,
  }
  return { message, ...(configuration && { configuration }) }
}
