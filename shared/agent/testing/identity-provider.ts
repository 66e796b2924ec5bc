import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Introspection } from '@parley/kit/auth/introspection'

/** An OAuth 2.0 server for tests: tokens for whom you like, introspected over real HTTP (RFC 7662). */
export class TestIdentityProvider implements AsyncDisposable {
  readonly url: string
  readonly #server: Server
  readonly #tokens: Map<string, Introspection>
  /** Introspections asked so far. */
  asked = 0
  /** Metadata of clients, with their `public_key`, at `/clients/<id>`; and how often it was asked for. */
  readonly clients = new Map<string, object>()
  clientsAsked = 0
  /** What it does instead of answering as it should. */
  fault: 'none' | 'status 500' | 'not json' | 'silence' = 'none'

  private constructor(server: Server, tokens: Map<string, Introspection>) {
    this.#server = server
    this.#tokens = tokens
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        if (request.method === 'GET') return this.#answerMetadata(request, response)
        this.asked += 1
        const token = new URLSearchParams(Buffer.concat(chunks).toString()).get('token') ?? ''
        if (this.fault === 'silence') return
        response.statusCode = this.fault === 'status 500' ? 500 : 200
        response.setHeader('content-type', 'application/json')
        response.end(
          this.fault === 'not json' ? '<html>' : JSON.stringify(this.#tokens.get(token) ?? { active: false }),
        )
      })
    })
  }

  static async start(): Promise<TestIdentityProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new TestIdentityProvider(server, new Map())
  }

  /** A token of the client; every field of the introspection can be set. */
  issue(clientId: string, fields: Partial<Introspection> = {}): string {
    const token = `test-${randomUUID()}`
    const scope = 'agent:read agent:write'
    this.#tokens.set(token, {
      active: true,
      client_id: clientId,
      scope,
      exp: Date.now() / 1000 + 3600,
      ...fields,
    })
    return token
  }

  #answerMetadata(request: IncomingMessage, response: ServerResponse): void {
    this.clientsAsked += 1
    if (this.fault === 'silence') return
    const found = this.clients.get(decodeURIComponent(request.url?.split('/').at(-1) ?? ''))
    response.statusCode = this.fault === 'status 500' ? 500 : found === undefined ? 404 : 200
    response.setHeader('content-type', 'application/json')
    response.end(this.fault === 'not json' ? '<html>' : JSON.stringify(found ?? {}))
  }

  revoke(token: string): void {
    this.#tokens.set(token, { active: false })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
