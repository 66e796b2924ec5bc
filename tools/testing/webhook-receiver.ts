import http from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { WireEvent } from '@parley/wire/codecs/parley/shapes'

/** A POST request that the receiver got. */
export interface ReceivedPost {
  path: string
  headers: http.IncomingHttpHeaders
  body: Buffer
  /** The parsed JSON body, in Parley's dialect unless the webhook was registered in another. */
  event: WireEvent & { event_id: string; sequence: number }
  /** Number of this delivery among those with the same `event_id`, or in A2A the same body, from 1. */
  attempt: number
  /** The value of `Date.now()` after the whole request was read. */
  at: number
}

/** `hang` never responds; `cut` closes the connection without a response. */
export type ScriptedAnswer =
  | number
  | 'hang'
  | 'cut'
  | { status: number; headers?: Record<string, string>; body?: string; afterMs?: number }

export type Script = ScriptedAnswer | ((post: ReceivedPost) => ScriptedAnswer | Promise<ScriptedAnswer>)

export interface ReceiverOptions {
  /** Response to every POST. Default 200. */
  answer?: Script
  /** The port. By default (0), any free port is used. */
  port?: number
  tls?: { cert: string; key: string }
}

/**
 * A receiver of webhooks on this machine, over real HTTP. The server under test needs `WEBHOOK_ALLOWED_HOSTS:
 * '127.0.0.1'`.
 *
 * ```ts
 * await using receiver = await WebhookReceiver.start({ answer: ({ attempt }) => (attempt < 3 ? 503 : 200) })
 * const posts = await receiver.waitFor(3)
 * ```
 */
export class WebhookReceiver implements AsyncDisposable {
  readonly url: string
  readonly port: number
  /** Every complete POST, in order. */
  readonly posts: ReceivedPost[] = []
  /** Number of connections. */
  connections = 0
  /** The response to the next requests, which can be changed at any time. */
  answer: Script
  readonly #server: http.Server
  readonly #sockets = new Set<Socket>()
  readonly #attempts = new Map<string, number>()

  private constructor(server: http.Server, options: ReceiverOptions) {
    this.#server = server
    this.answer = options.answer ?? 200
    this.port = (server.address() as AddressInfo).port
    this.url = `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.port}/hook`
    server.on('connection', (socket) => {
      this.connections += 1
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.on('request', (request, response) => void this.#receive(request, response).catch(() => {}))
  }

  static async start(options: ReceiverOptions = {}): Promise<WebhookReceiver> {
    const server = options.tls === undefined ? http.createServer() : https.createServer(options.tls)
    server.on('tlsClientError', () => {})
    await new Promise<void>((listening, failed) => {
      server.once('error', failed)
      server.listen(options.port ?? 0, '127.0.0.1', listening)
    })
    return new WebhookReceiver(server, options)
  }

  /** Each event once, in the order of first delivery. */
  get events(): ReceivedPost['event'][] {
    return this.posts.filter(({ attempt }) => attempt === 1).map(({ event }) => event)
  }

  /**
   * Resolves with the POSTs when there are this many, or when they meet the condition. @throws Error after 40 s
   * without a POST
   */
  async waitFor(condition: number | ((posts: ReceivedPost[]) => boolean)): Promise<ReceivedPost[]> {
    const isComplete = typeof condition === 'number' ? () => this.posts.length >= condition : condition
    let [count, endsAt] = [-1, 0]
    while (!isComplete(this.posts)) {
      if (this.posts.length > count) [count, endsAt] = [this.posts.length, Date.now() + 40_000]
      else if (Date.now() > endsAt) throw new Error(`only ${count} POSTs arrived`)
      await wait(5)
    }
    return this.posts
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #receive(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const event = JSON.parse(body.toString()) as ReceivedPost['event']
    // Deliveries in a dialect of A2A have no id of the event.
    const id = event.event_id ?? body.toString()
    const attempt = (this.#attempts.get(id) ?? 0) + 1
    this.#attempts.set(id, attempt)
    const { url: path = '', headers } = request
    const post: ReceivedPost = { path, headers, body, event, attempt, at: Date.now() }
    this.posts.push(post)
    const answer = typeof this.answer === 'function' ? await this.answer(post) : this.answer
    if (answer === 'hang') return
    if (answer === 'cut') return void request.socket.destroy()
    const {
      status,
      headers: more = {},
      body: text,
      afterMs = 0,
    } = typeof answer === 'number' ? { status: answer } : answer
    if (afterMs > 0) await wait(afterMs)
    response.writeHead(status, more).end(text)
  }
}
