import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import type { KeyPair } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { createServer } from '@parley/kit/http/server'
import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { KeyRing } from '../keys/key-ring.ts'
import { MasterKey, type MasterKeys } from '../keys/master-key.ts'
import { GatewayKeys } from '../keys/open-keys.ts'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import {
  createIdentityProvider,
  type IdentityProvider,
  type IdentityProviderOptions,
} from './identity-provider.ts'
import { type OAuthStore, oauthStore } from './oauth-store.ts'

export interface Answer {
  status: number
  headers: Headers
  text: string
  /** The parsed body, or `{}` if the body is not JSON. */
  body: Record<string, unknown>
}

/** The gateway's OAuth server on a free port, with its state in a folder that can be reused. */
export interface TestIdentityProvider extends AsyncDisposable {
  provider: IdentityProvider
  store: OAuthStore
  databaseFile: string
  origin: string
  logged: () => string
  fetch(path: string, init?: RequestInit): Promise<Answer>
  /** Posts a form, with HTTP Basic if `as` is given. */
  post(path: string, form: Record<string, string> | [string, string][], as?: Credentials): Promise<Answer>
  /** Registers a client. The request is signed with `key`, if given. */
  register(metadata: Record<string, unknown>, token?: string, key?: KeyPair): Promise<Answer>
  /** Returns a token obtained with client credentials. */
  token(as: Credentials, form?: Record<string, string>): Promise<string>
}

export interface Credentials {
  clientId: string
  clientSecret: string
}

/** The master key is in a file of the test's folder. */
const noSettings = { current: undefined, previous: undefined }

export const testMasters: MasterKeys = {
  current: new MasterKey(new Uint8Array(32).fill(7)),
  source: 'the test',
}

/** Opens the OAuth store with a fixed master key. */
export async function encryptedStore(documents: DocumentDatabase): Promise<OAuthStore> {
  return oauthStore(documents, await KeyRing.open(documents, testMasters))
}

export async function temporaryFolder(): Promise<AsyncDisposable & { dir: string }> {
  const dir = await mkdtemp(path.join(tmpdir(), 'parley-oauth-'))
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) }
}

function collectingLog() {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  return { lines, log: makeLog({ level: 'debug', name: 'test', destination }) }
}

/** Starts a server. Pass `dir` and `port` of an earlier server to restart that server. */
export async function startIdentityProvider(options: {
  dir: string
  port?: number
  issuer?: string
  agents?: Pick<IdentityProviderOptions, 'isTrusted' | 'namesOf' | 'isBarred'>
  unverified?: Pick<IdentityProviderOptions, 'openRegistration' | 'fetchDocument'>
  /** A store that several servers share, which then have the same `dir`. Default: a file in `dir`. */
  shared?: Required<Pick<IdentityProviderOptions, 'store' | 'leaseRecords'>>
}): Promise<TestIdentityProvider> {
  const databaseFile = path.join(
    options.dir,
    options.shared === undefined ? 'gateway.db' : `${randomUUID()}.db`,
  )
  const database = await openDatabase(databaseFile, gatewayMigrations)
  const documents = sqliteDocuments(database)
  const { log, lines } = collectingLog()
  const opened = GatewayKeys.open({ dataDir: options.dir, settings: noSettings, documents, log })
  const { files, cipher } = await opened.catch(async (error: unknown) => {
    await database[Symbol.asyncDispose]()
    throw error
  })
  const store = options.shared?.store ?? oauthStore(documents, cipher)
  const http = createHttpServer()
  await new Promise<void>((done) => http.listen(options.port ?? 0, '127.0.0.1', done))
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const provider = await createIdentityProvider({
    issuer: options.issuer ?? `${origin}/oauth2`,
    store,
    files,
    log,
    production: false,
    ...options.agents,
    ...options.unverified,
    ...options.shared,
  }).catch(async (error: unknown) => {
    http.close()
    await database[Symbol.asyncDispose]()
    throw error
  })
  const app = createServer({ log, metrics: createMetrics() })
  provider.mount(app)
  app.get('/other', async () => 'other')
  await app.ready()
  http.on('request', (request, response) => app.routing(request, response))
  return {
    ...client(origin, provider),
    provider,
    store,
    databaseFile,
    origin,
    logged: () => lines.join(''),
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections()
      await new Promise((done) => http.close(done))
      await app.close()
      await provider[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Returns a function that sends requests to a server and follows no redirects. */
export function requestsTo(origin: string): TestIdentityProvider['fetch'] {
  return async (at, init) => {
    const response = await fetch(new URL(at, origin), { redirect: 'manual', ...init })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: asJson(text) }
  }
}

function client(origin: string, provider: IdentityProvider) {
  const ask = requestsTo(origin)
  const post = (at: string, form: Record<string, string> | [string, string][], as?: Credentials) =>
    ask(at, {
      method: 'POST',
      headers: as === undefined ? {} : { authorization: basic(as) },
      body: new URLSearchParams(form),
    })
  return {
    fetch: ask,
    post,
    register: async (metadata: Record<string, unknown>, token?: string, key?: KeyPair) => {
      const body = JSON.stringify({ ...metadata, ...(key && { issuer: provider.issuer }) })
      return ask('/oauth2/register', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${token ?? (await provider.initialAccessToken())}`,
          ...(key && signRequest({ did: String(metadata['client_id']), key, body })),
        },
        body,
      })
    },
    token: async (as: Credentials, form: Record<string, string> = {}) => {
      const { body, text } = await post('/oauth2/token', { grant_type: 'client_credentials', ...form }, as)
      if (typeof body['access_token'] !== 'string') throw new Error(text)
      return body['access_token']
    },
  }
}

/** A minimal browser that keeps cookies by path and follows redirects one at a time. */
export class Browser {
  readonly #server: Pick<TestIdentityProvider, 'fetch' | 'origin'>
  readonly #cookies = new Map<string, { value: string; path: string }>()

  constructor(server: Pick<TestIdentityProvider, 'fetch' | 'origin'>) {
    this.#server = server
  }

  async go(
    address: string,
    form?: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const { pathname } = new URL(address, this.#server.origin)
    const cookie = [...this.#cookies]
      .filter(([, { path }]) => pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
      .join('; ')
    const answer = await this.#server.fetch(address, {
      headers: { cookie, accept: 'text/html', ...headers },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      this.#cookies.set(name, { value, path: /path=([^;]*)/i.exec(line)?.[1] ?? '/' })
    }
    return answer
  }
}

/** Returns a Basic header. Both halves are form-encoded first (RFC 6749, section 2.3.1). */
export function basic({ clientId, clientSecret }: Credentials): string {
  const encoded = [clientId, clientSecret].map(encodeURIComponent).join(':')
  return `Basic ${Buffer.from(encoded).toString('base64')}`
}

export function s256(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

function asJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
