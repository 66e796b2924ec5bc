import type { ElicitResult } from '@modelcontextprotocol/client'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import { AgentUnreachable } from '../client/agent-errors.ts'
import { HttpServer, type HttpServerOptions } from './http-transport.ts'
import { McpSession, type SessionTiming } from './session.ts'
import { type ServerCommand, stdioTransport } from './stdio-transport.ts'

/** A call for which a legacy server may request input. */
export interface ElicitationTarget {
  elicit(params: Record<string, unknown>, signal: AbortSignal): Promise<ElicitResult>
}

/** The sessions with one server. */
export interface Sessions extends AsyncDisposable {
  /** Returns a session for calls of a context. @throws the errors of `McpSession.open` */
  open(contextId: string, signal?: AbortSignal): Promise<McpSession>
  /** Closes the session, so that the next call opens another one. */
  end(session: McpSession): Promise<void>
  /**
   * Connects requests of the session for input with a call until the result is disposed. A legacy server does not state to which call its
   * request belongs, so it is canceled if the session has several calls.
   */
  connect(session: McpSession, call: ElicitationTarget): Disposable
}

abstract class CallsOfSessions {
  readonly #calls = new WeakMap<McpSession, Set<ElicitationTarget>>()

  connect(session: McpSession, call: ElicitationTarget): Disposable {
    const calls = this.#calls.get(session) ?? new Set()
    this.#calls.set(session, calls.add(call))
    session.onElicitation = async (params, signal) => {
      const [only, other] = calls
      return only === undefined || other !== undefined ? { action: 'cancel' } : only.elicit(params, signal)
    }
    return { [Symbol.dispose]: () => void calls.delete(call) }
  }

  /** Whether a call uses the session. */
  protected isUsed(session: McpSession): boolean {
    return (this.#calls.get(session)?.size ?? 0) > 0
  }
}

const [idleMs, sessionsMax, sweepMs] = [600_000, 64, 30_000]

/**
 * The sessions of an HTTP server. A modern server has no sessions, so one client is shared. A legacy server may keep state in a session,
 * so each context has its own: contexts belong to one caller.
 */
export class HttpSessions extends CallsOfSessions implements Sessions {
  readonly #server: HttpServer
  readonly #timing: SessionTiming
  readonly #open = new Map<string, { session: McpSession; usedAt: number }>()
  readonly #opening = new KeyedMutex()
  readonly #timer: NodeJS.Timeout
  #isModern = false

  /** @throws OutgoingRefused */
  constructor(options: HttpServerOptions, timing: SessionTiming = {}) {
    super()
    this.#server = new HttpServer({ listens: true, ...options })
    this.#timing = timing
    this.#timer = setInterval(() => void this.#sweep(), sweepMs).unref()
  }

  open(contextId: string, signal?: AbortSignal): Promise<McpSession> {
    return this.#opening.run([this.#isModern ? '' : contextId], async () => {
      // The first call has shown the revision of the server.
      const known = this.#open.get(this.#isModern ? '' : contextId)
      if (known !== undefined && !known.session.isClosed) {
        known.usedAt = Date.now()
        return known.session
      }
      const session = await McpSession.open(this.#server.transport(), {
        timing: this.#timing,
        ...(signal !== undefined && { signal }),
      })
      this.#isModern = session.info.era === 'modern'
      this.#open.set(this.#isModern ? '' : contextId, { session, usedAt: Date.now() })
      if (this.#open.size > sessionsMax) await this.#closeExcess(session)
      return session
    })
  }

  async end(session: McpSession): Promise<void> {
    for (const [key, one] of this.#open) if (one.session === session) this.#open.delete(key)
    await session[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all([...this.#open.values()].map(({ session }) => this.end(session)))
    await this.#server[Symbol.asyncDispose]()
  }

  /** Closes sessions that had no calls for some time. */
  async #sweep(): Promise<void> {
    const old = this.#unused().filter(({ usedAt }) => Date.now() - usedAt >= idleMs)
    await Promise.all(old.map(({ session }) => this.end(session)))
  }

  /** Closes the sessions that were unused for the longest time. The new session has no call yet. */
  async #closeExcess(opened: McpSession): Promise<void> {
    const excess = this.#unused()
      .filter(({ session }) => session !== opened)
      .sort((a, b) => a.usedAt - b.usedAt)
      .slice(0, this.#open.size - sessionsMax)
    await Promise.all(excess.map(({ session }) => this.end(session)))
  }

  #unused() {
    return [...this.#open.values()].filter(({ session }) => !this.isUsed(session))
  }
}

/** The session with a server that runs as a process. A process that has ended is started again by the next call. */
export class ProcessSessions extends CallsOfSessions implements Sessions {
  readonly #server: ServerCommand
  readonly #timing: SessionTiming
  readonly #opening = new KeyedMutex()
  readonly #stopped = new AbortController()
  #session: McpSession | undefined
  #isLegacy = false

  constructor(server: ServerCommand, timing: SessionTiming = {}) {
    super()
    this.#server = server
    this.#timing = timing
  }

  open(_contextId: string, signal?: AbortSignal): Promise<McpSession> {
    return this.#opening.run([''], async () => {
      this.#stopped.signal.throwIfAborted()
      if (this.#session !== undefined && !this.#session.isClosed) return this.#session
      const signals = [this.#stopped.signal, ...(signal === undefined ? [] : [signal])]
      this.#session = await this.#start(AbortSignal.any(signals))
      this.#isLegacy = this.#session.info.era === 'legacy'
      return this.#session
    })
  }

  async end(session: McpSession): Promise<void> {
    await session[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new AgentUnreachable('The server has been stopped', { received: false }))
    // A start in progress ends first.
    await this.#opening.run([''], async () => this.#session?.[Symbol.asyncDispose]())
  }

  /** Some legacy servers end at the request of the modern revision. */
  async #start(signal: AbortSignal): Promise<McpSession> {
    const options = { timing: this.#timing, signal }
    const open = (legacy: boolean) => McpSession.open(stdioTransport(this.#server), { ...options, legacy })
    try {
      return await open(this.#isLegacy)
    } catch (error) {
      signal.throwIfAborted()
      if (this.#isLegacy) throw error
      return await open(true)
    }
  }
}
