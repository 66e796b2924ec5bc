import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { Introspection } from '@parley/kit/auth/introspection'
import type { Identity } from '@parley/kit/did/identity'
import { TestIdentityProvider } from '../../testing/identity-provider.ts'
import type { TestAgent } from '../../testing.ts'
import type { DelegationOptions } from './delegation.ts'

const signatureHeaders = ['x-did', 'x-did-timestamp', 'x-did-signature', 'x-did-audience']

/** A gateway with a token endpoint: it exchanges tokens and forwards requests to the agents that were added. */
export class StubGateway implements AsyncDisposable {
  readonly url: string
  readonly identityProvider: TestIdentityProvider
  readonly agents = new Map<string, TestAgent>()
  /** The agent of messages without a name. */
  best = ''
  /** Replaces the answers to requests to agents. */
  fault: { status: number; body: object } | 'none' = 'none'
  /** Called with each message before it is forwarded, and with its response before it is returned. */
  onMessage: (step: 'request' | 'response') => Promise<void> = async () => {}
  /** The requests to agents: `<slug> <method>`. */
  readonly requests: string[] = []
  /** All tokens that were exchanged or forwarded. */
  readonly tokens = new Set<string>()
  readonly #server: Server

  private constructor(server: Server, identityProvider: TestIdentityProvider) {
    this.#server = server
    this.identityProvider = identityProvider
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('the server does not listen')
    this.url = `http://127.0.0.1:${address.port}`
    server.on('request', (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : undefined)
      })
    })
  }

  static async start(): Promise<StubGateway> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new StubGateway(server, await TestIdentityProvider.start())
  }

  /** Options of `testAgent` for an agent of this gateway. */
  options() {
    return {
      identityProvider: this.identityProvider,
      delegation: ({ did }: Identity): DelegationOptions => ({
        gatewayUrl: this.url,
        tokenUrl: `${this.url}/oauth2/token`,
        resource: this.url,
        clientId: did,
        clientSecret: 'secret',
      }),
    }
  }

  /** A token with which the agent received a client's message from this gateway. */
  tokenFor(agent: TestAgent, client: string, actors: string[] = [this.url]): string {
    const token = this.identityProvider.issue(client, { aud: agent.did, ...actOf(actors) })
    this.tokens.add(token)
    return token
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
    await this.identityProvider[Symbol.asyncDispose]()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    if (request.url === '/oauth2/token') return this.#exchange(new URLSearchParams(body), response)
    const slug = /^\/agents\/([^/]+)\/$/.exec(request.url ?? '')?.[1] ?? this.best
    const { method } = JSON.parse(body) as { method: string }
    this.requests.push(`${slug} ${method}`)
    if (this.fault !== 'none') return json(response, this.fault.status, this.fault.body)
    const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
    this.tokens.add(token)
    const read = await this.#introspect(token)
    if (!read.active || read.aud !== this.url)
      return json(response, 401, errorOf(-32010, 'The token is not active'))
    const agent = this.agents.get(slug)
    if (agent === undefined) return json(response, 404, errorOf(-32040, 'No such agent', { reason: 'agent' }))
    const actors = [this.url, ...actorsOf(read)]
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      authorization: `Bearer ${this.tokenFor(agent, read.client_id ?? '', actors)}`,
    }
    const forwarded = ['idempotency-key', 'accept', 'last-event-id', ...signatureHeaders]
    for (const name of forwarded) {
      const value = request.headers[name]
      if (typeof value === 'string') headers[name] = value
    }
    const abort = new AbortController()
    const isMessage = method.startsWith('message/')
    // A gateway delivers a message although its sender has disconnected.
    if (!isMessage) response.on('close', () => abort.abort())
    if (isMessage) await this.onMessage('request')
    const answer = await fetch(`${agent.url}/`, { method: 'POST', headers, body, signal: abort.signal })
    if (isMessage) await this.onMessage('response')
    if (response.destroyed) return await answer.body?.cancel()
    response.on('close', () => abort.abort())
    response.writeHead(answer.status, {
      'content-type': answer.headers.get('content-type') ?? '',
      'x-agent': slug,
    })
    if (answer.body === null) response.end()
    else
      Readable.fromWeb(answer.body as never)
        .on('error', () => response.destroy())
        .pipe(response)
  }

  /** The stub trusts the client id of the request. */
  async #exchange(form: URLSearchParams, response: ServerResponse): Promise<void> {
    const subject = await this.#introspect(form.get('subject_token') ?? '')
    if (!subject.active)
      return json(response, 400, { error: 'invalid_request', error_description: 'The token is not active' })
    const actors = [form.get('client_id') ?? '', ...actorsOf(subject)]
    const token = this.identityProvider.issue(subject.client_id ?? '', {
      aud: form.get('resource') ?? '',
      ...actOf(actors),
    })
    this.tokens.add(token)
    json(response, 200, { access_token: token, token_type: 'Bearer', expires_in: 300 })
  }

  async #introspect(token: string): Promise<Introspection> {
    const answer = await fetch(this.identityProvider.url, {
      method: 'POST',
      body: new URLSearchParams({ token }),
    })
    return (await answer.json()) as Introspection
  }
}

function actorsOf({ act }: Introspection): string[] {
  return act === undefined ? [] : [act.sub, ...actorsOf({ active: true, act: act.act })]
}

function actOf(actors: readonly string[]): Pick<Introspection, 'act'> {
  const [sub, ...others] = actors
  return sub === undefined ? {} : { act: { sub, ...actOf(others) } }
}

const errorOf = (code: number, message: string, data: object = {}) => ({
  jsonrpc: '2.0',
  id: null,
  error: { code, message, data },
})

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
