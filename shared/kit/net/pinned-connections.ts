import type { Socket } from 'node:net'
import { Client } from './http-client.ts'
import { OutgoingFailed } from './outgoing-errors.ts'
import type { OutgoingUrl } from './outgoing-url.ts'
import { openPinned } from './pinned-socket.ts'

export interface PinnedConnectionsOptions {
  /** Maximum number of open connections per origin, used or idle. Default 8. */
  perHostMax?: number
  /** Maximum number of open connections in total. Default 256. */
  totalMax?: number
  /** Maximum number of requests waiting for a connection; additional ones fail with `busy`. Default 1000. */
  waitingMax?: number
  /** How long an idle connection is kept open. Default 10 s. */
  idleMs?: number
  /** CA certificates (PEM) that replace the default ones. */
  ca?: string | undefined
}

/** A connection to a checked address. It never reconnects. */
export interface PinnedConnection {
  client: Client
  origin: string
  address: string
  socket: Socket
  /** When it became idle, by `performance.now()`. */
  idleSince: number
}

export const headerMaxBytes = 16 * 1024

/**
 * Keep-alive pool for outgoing requests. An idle connection is reused only if the current lookup for the request has
 * returned and checked its address.
 */
export class PinnedConnections implements AsyncDisposable {
  readonly #perHostMax: number
  readonly #totalMax: number
  readonly #waitingMax: number
  readonly #idleMs: number
  readonly #ca: string | undefined
  /** Idle connections, oldest first. */
  readonly #idle = new Set<PinnedConnection>()
  readonly #all = new Set<PinnedConnection>()
  /** Number of connections per origin, including those being opened. */
  readonly #open = new Map<string, number>()
  readonly #waiting = new Set<{ origin: string; wake: () => void }>()
  #total = 0
  #disposed = false

  constructor(options: PinnedConnectionsOptions = {}) {
    this.#perHostMax = options.perHostMax ?? 8
    this.#totalMax = options.totalMax ?? 256
    this.#waitingMax = options.waitingMax ?? 1000
    this.#idleMs = options.idleMs ?? 10_000
    this.#ca = options.ca
  }

  /** Returns an idle connection if there is one; return it with `release`. The parameters are as for `lease`. */
  takeIdle(
    target: OutgoingUrl,
    addresses: readonly string[],
    idleMaxMs?: number,
  ): PinnedConnection | undefined {
    return this.#disposed ? undefined : this.#takeIdle(target.origin, addresses, idleMaxMs)
  }

  /**
   * Returns a connection for one request; return it with `release`.
   * @param addresses all current addresses of the host, checked
   * @param idleMaxMs how long the connection may have been idle. Default: any time
   * @throws OutgoingFailed; the signal's reason
   */
  async lease(
    target: OutgoingUrl,
    addresses: readonly string[],
    signal: AbortSignal,
    idleMaxMs?: number,
  ): Promise<PinnedConnection> {
    const { origin } = target
    for (;;) {
      signal.throwIfAborted()
      if (this.#disposed) throw new OutgoingFailed('aborted', 'The connections are closed')
      const idle = this.#takeIdle(origin, addresses, idleMaxMs)
      if (idle !== undefined) return idle
      if (this.#mayOpen(origin)) return await this.#openOne(target, addresses, signal)
      await this.#wait(origin, signal)
    }
  }

  /** @param reusable whether the response was read completely */
  release(connection: PinnedConnection, reusable: boolean): void {
    const keep = reusable && this.#idleMs > 0 && !this.#disposed && !connection.socket.destroyed
    if (!keep) return this.#close(connection)
    connection.idleSince = performance.now()
    this.#idle.add(connection)
    this.#wakeOne()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true
    for (const { wake } of this.#waiting) wake()
    await Promise.all([...this.#all].map(({ client }) => client.destroy()))
  }

  #takeIdle(
    origin: string,
    addresses: readonly string[],
    idleMaxMs = Number.POSITIVE_INFINITY,
  ): PinnedConnection | undefined {
    for (const connection of this.#idle) {
      if (connection.origin !== origin) continue
      this.#idle.delete(connection)
      const isFresh = performance.now() - connection.idleSince <= idleMaxMs
      if (isFresh && addresses.includes(connection.address) && !connection.socket.destroyed) return connection
      // It was idle for too long, or the address of the host has changed.
      this.#close(connection)
    }
    return undefined
  }

  #mayOpen(origin: string): boolean {
    if ((this.#open.get(origin) ?? 0) >= this.#perHostMax) return false
    const [oldest] = this.#idle
    if (this.#total >= this.#totalMax && oldest !== undefined) this.#close(oldest)
    return this.#total < this.#totalMax
  }

  async #openOne(
    target: OutgoingUrl,
    addresses: readonly string[],
    signal: AbortSignal,
  ): Promise<PinnedConnection> {
    const { origin } = target
    this.#count(origin, 1)
    try {
      const { socket, address } = await openPinned(target, addresses, { ca: this.#ca, signal })
      const idleSince = performance.now()
      const connection = { client: this.#clientOver(socket, origin), origin, address, socket, idleSince }
      this.#all.add(connection)
      socket.once('close', () => this.#close(connection))
      if (this.#disposed) this.#close(connection)
      return connection
    } catch (error) {
      this.#count(origin, -1)
      this.#wakeOne()
      throw error
    }
  }

  /** Creates a client for this socket that cannot open another one. */
  #clientOver(socket: Socket, origin: string): Client {
    return new Client(origin, {
      // The client expects the callback to run asynchronously.
      connect: (_options, done) =>
        queueMicrotask(() =>
          socket.destroyed ? done(new Error('the connection is closed'), null) : done(null, socket),
        ),
      pipelining: 1,
      keepAliveTimeout: Math.max(this.#idleMs, 1),
      keepAliveMaxTimeout: Math.max(this.#idleMs, 1),
      maxHeaderSize: headerMaxBytes,
      // The deadline covers the whole request.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  #close(connection: PinnedConnection): void {
    if (!this.#all.delete(connection)) return
    this.#idle.delete(connection)
    this.#count(connection.origin, -1)
    connection.socket.destroy()
    // Runs after the client's own listener, which knows why the socket was closed.
    queueMicrotask(() => void connection.client.destroy().catch(() => {}))
    this.#wakeOne()
  }

  #count(origin: string, by: 1 | -1): void {
    const open = (this.#open.get(origin) ?? 0) + by
    this.#total += by
    if (open > 0) this.#open.set(origin, open)
    else this.#open.delete(origin)
  }

  async #wait(origin: string, signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.#waitingMax)
      throw new OutgoingFailed('busy', 'Too many outgoing requests are waiting')
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiter = { origin, wake: resolve }
    this.#waiting.add(waiter)
    const wake = () => resolve()
    signal.addEventListener('abort', wake, { once: true })
    await promise
    this.#waiting.delete(waiter)
    signal.removeEventListener('abort', wake)
    // This waiter was woken but is already aborted, so it passes the turn to the next one.
    if (signal.aborted) this.#wakeOne()
  }

  /** Wakes the longest-waiting request that can now get a connection. */
  #wakeOne(): void {
    for (const waiter of this.#waiting) {
      const hasIdle = [...this.#idle].some(({ origin }) => origin === waiter.origin)
      if (!hasIdle && (this.#open.get(waiter.origin) ?? 0) >= this.#perHostMax) continue
      this.#waiting.delete(waiter)
      waiter.wake()
      return
    }
  }
}
