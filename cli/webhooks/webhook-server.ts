import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type NumberedEvent, readNumberedEvent } from '@parley/wire/codecs/parley/events'
import { CommandFailed } from '../terminal/faults.ts'
import { type A2aEvent, readA2aEvent } from './a2a-event.ts'

export interface WebhookServerOptions {
  host: string
  /** The port to listen on; 0 selects a free port. */
  port: number
  /** Bearer token that every request must carry. */
  token?: string | undefined
  /** Handles an event and returns the status of the response. */
  receive: (event: NumberedEvent) => number | Promise<number>
  /** Handles an event of a webhook that was set with an A2A dialect. Without it, such events are rejected. */
  receiveA2a?: (event: A2aEvent) => number
  /** Called with the reason when a request is rejected. */
  refuse?: (why: string) => void
}

/** More than the largest task output, which is 32 MiB, needs when encoded as base64 in JSON. */
const bodyMaxBytes = 64 * 1024 * 1024
const leaveMs = 200

/** An HTTP server that receives webhooks by POST to any path. */
export class WebhookServer implements AsyncDisposable {
  /** The server's address on this machine. */
  readonly url: string
  readonly #server: Server

  private constructor(server: Server, host: string) {
    this.#server = server
    const { port } = server.address() as AddressInfo
    const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
    this.url = `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}/`
  }

  /** @throws CommandFailed if the server cannot listen */
  static async start(options: WebhookServerOptions): Promise<WebhookServer> {
    const { host, port } = options
    const server = createServer((request, response) => {
      answer(request, options).then(
        (status) => end(response, status),
        () => request.destroy(),
      )
    })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(new CommandFailed(`Cannot listen at ${host}, port ${port} (${error.code ?? error.message}).`)),
    )
    server.listen(port, host, resolve)
    await promise
    return new WebhookServer(server, host)
  }

  /** Closes the server after a short grace period for responses in progress. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    this.#server.closeIdleConnections()
    const timer = setTimeout(() => this.#server.closeAllConnections(), leaveMs)
    await closed
    clearTimeout(timer)
  }
}

async function answer(request: IncomingMessage, options: WebhookServerOptions): Promise<number> {
  const refused = (status: number, why: string) => {
    request.resume()
    options.refuse?.(why)
    return status
  }
  if (request.method !== 'POST') return refused(405, `${request.method} instead of POST`)
  if (options.token !== undefined && !hasToken(request, options.token))
    return refused(401, 'without the right token')
  const body = await bodyOf(request)
  if (body === undefined) return refused(413, `more than ${bodyMaxBytes} bytes`)
  const json = parsed(body)
  const event = readNumberedEvent(json)
  if (event !== undefined) return options.receive(event)
  const a2a = options.receiveA2a && readA2aEvent(json)
  return a2a === undefined ? refused(400, 'not an event of a task') : (options.receiveA2a?.(a2a) ?? 200)
}

function end(response: ServerResponse, status: number): void {
  if (response.destroyed) return
  response.writeHead(status, { 'content-length': 0, ...(status === 405 ? { allow: 'POST' } : {}) }).end()
}

/** A2A webhooks carry their token in a header of their own. */
function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const notification = headers['x-a2a-notification-token']
  return isSame(headers.authorization, `Bearer ${token}`) || isSame(String(notification ?? ''), token)
}

function isSame(header: string | undefined, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text, 'latin1').digest()
  return timingSafeEqual(digest(header ?? ''), digest(expected))
}

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size > bodyMaxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}
