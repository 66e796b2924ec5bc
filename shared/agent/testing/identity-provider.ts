import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Introspection } from '@parley/kit/auth/introspection'

/** An OAuth 2.0 server for tests: issues tokens for any client and answers introspection over HTTP (RFC 7662). */
export class TestIdentityProvider implements AsyncDisposable {
  /** The address, for example `http://127.0.0.1:40001`. Introspection is served at every path. */
  readonly url: string
  readonly #server: Server
  readonly #tokens: Map<string, Introspection>
  /** The number of introspection requests so far. */
  introspections = 0
  /** The clients' metadata with their `public_key`, served at `/clients/<id>`. */
  readonly clients = new Map<string, object>()
  /** The number of requests for client metadata so far. */
  metadataRequests = 0
  /** Further fields of the server's metadata (RFC 8414). Without them, the metadata is not served. */
  metadata: object | undefined
  /** Answers requests to the token endpoint. By default, they are answered as introspection requests. */
  onTokenRequest: ((form: URLSearchParams) => { status: number; body: object }) | undefined
  /** A fault that replaces every answer; `silence` sends none. */
  fault: 'none' | 'status 500' | 'not json' | 'silence' = 'none'

  private constructor(server: Server, tokens: Map<string, Introspection>) {
    this.#server = server
    this.#tokens = tokens
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('the server does not listen')
    this.url = `http://127.0.0.1:${address.port}`
    server.on('request', (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        if (request.method === 'GET') return this.#answerMetadata(request, response)
        const form = new URLSearchParams(Buffer.concat(chunks).toString())
        if (form.has('grant_type') && this.onTokenRequest !== undefined) {
          const { status, body } = this.onTokenRequest(form)
          response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
          return
        }
        this.introspections += 1
        const token = form.get('token') ?? ''
        if (this.fault === 'silence') return
        response.statusCode = this.fault === 'status 500' ? 500 : 200
        response.setHeader('content-type', 'application/json')
        response.end(
          this.fault === 'not json' ? '<html>' : JSON.stringify(this.#tokens.get(token) ?? { active: false }),
        )
      })
    })
  }

  /** Starts a server on a free port. */
  static async start(): Promise<TestIdentityProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new TestIdentityProvider(server, new Map())
  }

  /** Issues a token for the client, valid for an hour. `fields` override fields of the introspection response. */
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
    if (request.url?.startsWith('/.well-known/') === true) {
      response.statusCode = this.metadata === undefined ? 404 : 200
      response.end(JSON.stringify({ issuer: this.url, ...this.metadata }))
      return
    }
    this.metadataRequests += 1
    if (this.fault === 'silence') return
    const found = this.clients.get(decodeURIComponent(request.url?.split('/').at(-1) ?? ''))
    response.statusCode = this.fault === 'status 500' ? 500 : found === undefined ? 404 : 200
    response.setHeader('content-type', 'application/json')
    response.end(this.fault === 'not json' ? '<html>' : JSON.stringify(found ?? {}))
  }

  /** Changes fields of the introspection response. */
  change(token: string, fields: Partial<Introspection>): void {
    this.#tokens.set(token, { ...(this.#tokens.get(token) ?? { active: false }), ...fields })
  }

  /** Gives a token another text, for example a long one. */
  rename(token: string, text: string): void {
    this.#tokens.set(text, this.#tokens.get(token) ?? { active: false })
    this.#tokens.delete(token)
  }

  /** Makes introspection report the token as inactive. */
  revoke(token: string): void {
    this.#tokens.set(token, { active: false })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
