import { hash, timingSafeEqual } from 'node:crypto'
import type { AuthenticatedCaller, Authenticator } from '@parley/kit/auth/authenticate'
import type { RequestLimits } from '@parley/kit/http/request-limits'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ConsoleAccess, TokenPurpose } from '../oauth/accounts/console-access.ts'
import { type Session, sessionMaxSeconds } from '../oauth/accounts/sessions.ts'

/** A request with the cookie of an open session. */
export interface OpenSession {
  session: Session
  cookie: string
}

export interface BrowserSessionsOptions {
  access: ConsoleAccess
  authenticator: Authenticator
  gatewayUrl: string
  limits: RequestLimits | undefined
}

/** How often an open stream checks its session, which another gateway may have ended, and the client of its account. */
const streamCheckMs = 5000

/** Returns the cookie of the session of a request, before it is checked. */
export function sessionCookieOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return /(?:^|;) *(?:__Host-)?parley_console=([\w-]{43})(?:;|$)/.exec(headers.cookie ?? '')?.[1]
}

/** Binds the sessions of the console to browsers. */
export class BrowserSessions {
  readonly #access: ConsoleAccess
  readonly #authenticator: Authenticator
  readonly #limits: RequestLimits | undefined
  readonly #origin: string
  readonly #isSecure: boolean
  readonly cookieName: string

  constructor({ access, authenticator, gatewayUrl, limits }: BrowserSessionsOptions) {
    this.#access = access
    this.#authenticator = authenticator
    this.#limits = limits
    this.#origin = new URL(gatewayUrl).origin
    this.#isSecure = gatewayUrl.startsWith('https:')
    this.cookieName = this.#isSecure ? '__Host-parley_console' : 'parley_console'
  }

  /** Starts a session and ends the one that the browser has, so that a planted cookie is of no use. */
  async start(
    request: FastifyRequest,
    reply: FastifyReply,
    account: Parameters<ConsoleAccess['sessions']['create']>[0],
  ): Promise<void> {
    const { sessions } = this.#access
    const earlier = request.cookies[this.cookieName]
    if (earlier !== undefined) await sessions.end(earlier)
    const userAgent = request.headers['user-agent']
    const cookie = await sessions.create(account, { address: request.ip, userAgent })
    void reply.setCookie(this.cookieName, cookie, { ...this.#attributes, maxAge: sessionMaxSeconds })
  }

  async end({ cookie }: OpenSession, reply: FastifyReply): Promise<void> {
    await this.#access.sessions.end(cookie)
    void reply.clearCookie(this.cookieName, this.#attributes)
  }

  hasCookie(request: FastifyRequest): boolean {
    return request.cookies[this.cookieName] !== undefined
  }

  async find(request: FastifyRequest): Promise<OpenSession | undefined> {
    const cookie = request.cookies[this.cookieName]
    if (cookie === undefined) return undefined
    const session = await this.#access.sessions.find(cookie)
    if (session !== undefined) return { session, cookie }
    this.#limits?.recognize(cookie, {})
    return undefined
  }

  /**
   * Returns the session of a request. A request that changes something must come from a page of this server and contain
   * the token of the session.
   * @throws ParleyError AuthenticationRequired, InsufficientPermissions
   */
  async require(request: FastifyRequest): Promise<OpenSession> {
    this.requireSameSite(request)
    const found = await this.find(request)
    if (found === undefined) throw sessionEnded()
    request.callerId = found.session.person.clientId
    const changes = !['GET', 'HEAD'].includes(request.method)
    if (changes && !isEqual(request.headers['x-csrf-token'], found.session.csrf)) throw notOwnPage()
    return found
  }

  /**
   * Refuses requests that a page of another origin has caused, in addition to the cookie's `SameSite`. Browsers that send
   * no `Sec-Fetch-Site` send `Origin` with every change.
   * @throws ParleyError InsufficientPermissions
   */
  requireSameSite({ headers, protocol, method }: FastifyRequest): void {
    const { origin, 'sec-fetch-site': site } = headers
    const isRead = method === 'GET' || method === 'HEAD'
    if (site !== undefined && site !== 'same-origin' && !(isRead && site === 'none')) throw notOwnPage()
    const isOwn =
      origin === undefined || origin === this.#origin || origin === `${protocol}://${headers.host}`
    // A form of a page without a referrer has the origin `null`, which only `Sec-Fetch-Site` distinguishes from others.
    if (!isOwn && !(origin === 'null' && site === 'same-origin')) throw notOwnPage()
  }

  /**
   * Returns the person as a caller of the gateway's routes.
   * @throws ParleyError InsufficientPermissions if the client of the account was revoked
   */
  async callerOf({ session, cookie }: OpenSession, purpose: TokenPurpose): Promise<AuthenticatedCaller> {
    const { person } = session
    for (const isLast of [false, true]) {
      const token = await this.#access.tokenFor(person, purpose)
      if (token === undefined) break
      try {
        const headers = { authorization: `Bearer ${token}` }
        const caller = await this.#authenticator.identify({ headers, method: 'GET', url: '/' })
        this.#limits?.recognize(cookie, caller.credentials.introspection)
        return caller
      } catch (error) {
        const isRefused =
          error instanceof ParleyError && ['InvalidToken', 'TokenExpired'].includes(error.error)
        if (!isRefused || isLast) throw isRefused ? noClient(person.clientId) : error
        this.#access.forgetToken(person, purpose)
      }
    }
    throw noClient(person.clientId)
  }

  /**
   * Calls the function when the session ends, or its person may not use the gateway any longer. Dispose of the result when the
   * stream has ended.
   */
  watch({ session, cookie }: OpenSession, purpose: TokenPurpose, onEnd: () => void): Disposable {
    const check = async () => {
      const isOpen = await this.#access.sessions.isOpen(cookie)
      if (!isOpen) return onEnd()
      await this.callerOf({ session, cookie }, purpose).catch((error: unknown) => {
        if (error instanceof ParleyError && error.error === 'InsufficientPermissions') onEnd()
      })
    }
    // While the store does not answer, the stream continues.
    const timer = setInterval(() => void check().catch(() => {}), streamCheckMs).unref()
    const watch = this.#access.sessions.watch(cookie, onEnd)
    return {
      [Symbol.dispose]: () => {
        clearInterval(timer)
        watch[Symbol.dispose]()
      },
    }
  }

  get #attributes() {
    return { path: '/', httpOnly: true, sameSite: 'strict', secure: this.#isSecure } as const
  }
}

function isEqual(given: string | string[] | undefined, expected: string): boolean {
  if (typeof given !== 'string') return false
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', expected, 'buffer'))
}

export const sessionEnded = () =>
  new ParleyError('AuthenticationRequired', {
    message: 'Your session has ended: sign in again at /console/sign-in',
    data: { reason: 'session' },
  })

const noClient = (clientId: string) =>
  new ParleyError('InsufficientPermissions', {
    message: `The client of your account (${clientId}) was revoked or removed: an operator can enable it with npx parley clients enable`,
    data: { reason: 'client' },
  })

const notOwnPage = () =>
  new ParleyError('InsufficientPermissions', {
    message:
      'The request does not come from a page of the console, or has an outdated x-csrf-token: reload the page',
    data: { reason: 'csrf' },
  })
