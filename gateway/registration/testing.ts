import { mkdtemp, readFile, rm } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { answerChallenge, type Challenge } from '@parley/kit/did/challenge'
import { gatewayIdentity, type Identity } from '@parley/kit/did/identity'
import { signRequest } from '@parley/kit/did/signature'
import { makeLog } from '@parley/kit/process/log'
import { type GatewayApp, startGatewayApp } from '../app.ts'
import { gatewayConfig } from '../config.ts'
import type { GuardedClientOptions } from './guarded-client.ts'

export const production = { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes' }
const seedOf = (byte: number) => Buffer.alloc(32, byte)
/** Returns an agent identity. `gatewayIdentity` can derive one from any seed. */
const identityOf = (byte: number) => gatewayIdentity({ seed: seedOf(byte), author: 'alice', name: 'agent' })
export const alice = identityOf(1)
export const bob = identityOf(2)

export interface ScriptedAgent {
  identity?: Identity
  name?: string
  card?: Record<string, unknown>
  /** The list of `GET /agent/skills`. */
  skills?: object[]
  document?: unknown
  /** How the agent answers a challenge. By default it answers correctly. */
  challenge?: 'no route' | 'silence' | Identity | ((asked: Challenge) => unknown)
  /** Answers requests at other paths, which are 404 by default. */
  otherwise?: (url: string, body: string) => unknown
  /** Handles requests before the default routes. */
  before?: http.RequestListener
}

/** A request received by a scripted agent. */
export interface ReceivedRequest {
  url: string
  authorization: string | undefined
}

interface JsonResponse {
  status: number
  json: Record<string, unknown>
  error: { code: number; data: { reason?: string } }
}

/** A gateway in a temporary folder, with agents that register with it. */
export class RegistrationGateway implements AsyncDisposable {
  readonly folder: string
  /** Log lines that the gateway wrote. */
  readonly logged: string[] = []
  readonly #stack = new AsyncDisposableStack()
  #gateway: GatewayApp | undefined

  private constructor(folder: string) {
    this.folder = folder
    this.#stack.defer(() => rm(folder, { recursive: true, force: true }))
  }

  static async open(): Promise<RegistrationGateway> {
    return new RegistrationGateway(await mkdtemp(path.join(os.tmpdir(), 'parley-join-')))
  }

  get gateway(): GatewayApp {
    if (this.#gateway === undefined) throw new Error('the gateway is not started')
    return this.#gateway
  }

  async start(
    env: NodeJS.ProcessEnv = {},
    guardedClient: Partial<GuardedClientOptions> = {},
    more: { agentsDir?: string } = {},
  ): Promise<void> {
    const settings = gatewayConfig({
      PORT: '0',
      DATA_DIR: path.join(this.folder, 'data'),
      REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
      ...env,
    })
    const destination = { write: (line: string) => void this.logged.push(line) }
    const log = makeLog({ level: 'info', name: 'test', destination })
    const app = await startGatewayApp({
      settings,
      log,
      guardedClient: { timeoutMs: 20_000, ...guardedClient },
      ...more,
    })
    this.#gateway = this.#stack.use(app)
  }

  /** Starts an agent server with scripted behaviour. `calls` records the requests that it receives. */
  async serveAgent(script: ScriptedAgent) {
    const calls: ReceivedRequest[] = []
    const server = http.createServer((request, response) => void answer(request, response, script, calls))
    server.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    this.#stack.defer(() => {
      server.closeAllConnections()
      server.close()
    })
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls }
  }

  async clientToken(file: string, scope?: string, resource?: string): Promise<string> {
    const { token_url, ...client } = JSON.parse(
      await readFile(path.join(this.folder, 'data', file), 'utf8'),
    ) as Record<string, string>
    return this.tokenFor(token_url ?? '', { ...client, ...(resource !== undefined && { resource }) }, scope)
  }

  async tokenFor(tokenUrl: string, client: Record<string, string | undefined>, scope?: string) {
    const form = { grant_type: 'client_credentials', ...client, ...(scope !== undefined && { scope }) }
    const answer = await fetch(tokenUrl, { method: 'POST', body: new URLSearchParams(form as never) })
    return ((await answer.json()) as { access_token: string }).access_token
  }

  operator(): Promise<string> {
    return this.clientToken('oauth/operator-client.json', 'agent:admin')
  }

  carol(): Promise<string> {
    return this.clientToken('dev-client.json')
  }

  /** Registers an OAuth client named after a DID, with a key. */
  async register(identity: Identity): Promise<{ client_id: string; client_secret: string }> {
    const initial = await readFile(path.join(this.folder, 'data', 'oauth', 'initial-access-token'), 'utf8')
    const { public: origin } = this.gateway.addresses
    const body = JSON.stringify({
      issuer: `${origin}/oauth2`,
      client_id: identity.did,
      client_name: 'external',
      grant_types: ['client_credentials'],
      public_key: identity.key.publicKeyBase58,
    })
    const answer = await fetch(`${origin}/oauth2/register`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${initial.trim()}`,
        'content-type': 'application/json',
        ...signRequest({ ...identity, body }),
      },
      body,
    })
    const { client_id, client_secret } = (await answer.json()) as Record<string, string>
    return { client_id: client_id ?? '', client_secret: client_secret ?? '' }
  }

  /** Registers such a client and returns a token for it. */
  async registered(identity: Identity): Promise<string> {
    return this.tokenFor(`${this.gateway.addresses.public}/oauth2/token`, await this.register(identity))
  }

  async send(
    method: string,
    route: string,
    bearer: string,
    body?: object,
    signer?: Identity,
  ): Promise<JsonResponse> {
    const sent = body === undefined ? '' : JSON.stringify(body)
    const response = await fetch(`${this.gateway.addresses.public}${route}`, {
      method,
      headers: {
        ...(bearer !== '' && { authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(signer !== undefined && signRequest({ ...signer, body: sent })),
      },
      ...(body !== undefined && { body: sent }),
    })
    const json = (await response.json()) as Record<string, unknown>
    return { status: response.status, json, error: json['error'] as JsonResponse['error'] }
  }

  join(url: string, bearer: string, signer?: Identity): Promise<JsonResponse> {
    return this.send('POST', '/registry/agents', bearer, { url }, signer)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync()
  }
}

async function answer(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  script: ScriptedAgent,
  calls: ReceivedRequest[],
): Promise<void> {
  const { url = '', headers } = request
  calls.push({ url, authorization: headers.authorization })
  if (script.before !== undefined) return script.before(request, response) as void
  const json = await answerOf(url, await text(request), script, script.name ?? 'external')
  if (json === 'silence') return
  if (json === undefined) response.writeHead(404).end('{}')
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json))
}

async function answerOf(url: string, body: string, script: ScriptedAgent, name: string): Promise<unknown> {
  const { identity, challenge = identity } = script
  const did = identity?.did
  if (url === '/.well-known/agent.json') return { name, ...(did && { did }), ...script.card }
  if (url === '/agent/skills') return { skills: script.skills ?? [{ id: 'greet', name: 'Greet' }] }
  if (url.startsWith('/did/resolve')) return script.document ?? identity?.document
  if (url === '/health') return { ready: true }
  if (url === '/echo') return { echo: true }
  if (url !== '/did/challenge') return script.otherwise?.(url, body)
  if (challenge === undefined || challenge === 'no route') return undefined
  if (challenge === 'silence') return 'silence'
  const asked = JSON.parse(body) as Challenge
  if (typeof challenge === 'function') return challenge(asked)
  return answerChallenge(asked, did ?? '', challenge.key)
}
