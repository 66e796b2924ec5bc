import type { OutgoingHttpHeaders } from 'node:http'
import { PassThrough } from 'node:stream'
import { exposedHeaders } from '@parley/kit/http/cors'
import { bodyOf } from '@parley/kit/http/request-body'
import { dialectHeaders } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { InnerRequest, InnerRequests, InnerResponse } from '../calls/inner-requests.ts'
import type { TokenPurpose } from '../oauth/accounts/console-access.ts'
import type { BrowserSessions, OpenSession } from './browser-sessions.ts'
import { bridgeApi } from './descriptions.ts'

export const bridgePrefix = '/console/api'

/** The header by which the gateway's routes recognize the session of an inner request. */
export const sessionHeader = 'x-parley-console-session'

/**
 * The routes of the gateway that the console uses. The routes of operators take a token that no agent accepts, and requests
 * that reach agents never have it.
 */
const routes: readonly [prefix: string, TokenPurpose][] = [
  ['/operator/', 'operate'],
  ['/registry/', 'operate'],
  ['/clients', 'operate'],
  ['/client-keys', 'operate'],
  ['/keys', 'operate'],
  ['/agents/', 'work'],
  ['/.well-known/', 'work'],
  ['/agent/negotiation', 'work'],
  ['/negotiations/', 'work'],
  ['/catalog', 'work'],
  ['/search', 'work'],
  ['/explore', 'work'],
  ['/v1/', 'work'],
  ['/health', 'work'],
  ['/openapi.json', 'work'],
  ['/did', 'work'],
]

/** The gateway sends the agent a token for its ledger only (spec/authentication.md#ledger). */
const ledger = /^\/agents\/[^/]+\/payments(\/|$)/

/** Request headers that the routes read, besides those of every inner request. */
const requestHeaders = [
  'accept',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'last-event-id',
  'payment-signature',
  'x-payment',
  'x-payment-session',
  'x-parley-context',
  ...dialectHeaders.request.map((name) => name.toLowerCase()),
]

/**
 * Response headers that pages of the console may read. An agent may send any header, and others would act on the origin of the
 * console: set cookies, redirect, clear its data, or allow a service worker.
 */
const answerHeaders = new Set([
  'cache-control',
  'content-encoding',
  'content-length',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'vary',
  'x-accel-buffering',
  ...exposedHeaders.map((name) => name.toLowerCase()),
])
answerHeaders.delete('www-authenticate')

/** Types that a browser shows without running anything. All others are downloads of bytes. */
const plainType = /^(application\/([\w.-]+\+)?json|text\/(plain|event-stream))\s*(;|$)/i

/** The policy of each answer, so that a document among the answers has another origin and no scripts. */
const documentPolicy = {
  'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}

/** Adds `/console/api/*`: requests to the gateway's own routes for the person who has signed in. */
export function addApiBridge(
  scope: FastifyInstance,
  { sessions, requests }: { sessions: BrowserSessions; requests: InnerRequests },
): void {
  scope.route<{ Params: { '*': string } }>({
    method: ['GET', 'POST', 'PUT', 'DELETE'],
    url: `${bridgePrefix}/*`,
    config: { api: bridgeApi },
    handler: async (request, reply) => {
      const open = await sessions.require(request)
      const { path, purpose } = routeOf(request)
      const caller = await sessions.callerOf(open, purpose)
      const response = await requests.of(request, caller).send(innerRequest(request, path, open))
      if (isRedirect(response)) {
        response[Symbol.dispose]()
        throw redirectRefused()
      }
      return pass(response, reply, (onEnd) => sessions.watch(open, purpose, onEnd))
    },
  })
}

/** Compares the path as it was sent, because the route decides by the same characters. @throws ParleyError NotFound */
function routeOf({ url }: FastifyRequest): { path: string; purpose: TokenPurpose } {
  const path = url.slice(bridgePrefix.length)
  const [plain = '/'] = path.split('?', 1)
  if (plain === '/') return { path, purpose: 'work' }
  const found = routes.find(([prefix]) => plain.startsWith(prefix))
  const isOdd = plain.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))
  if (found === undefined || isOdd) throw new ParleyError('NotFound', { data: { reason: 'route' } })
  return { path, purpose: ledger.test(plain) ? 'operate' : found[1] }
}

const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const

function innerRequest(request: FastifyRequest, path: string, { session }: OpenSession): InnerRequest {
  const headers: Record<string, string> = { [sessionHeader]: session.id }
  for (const name of requestHeaders) {
    const value = request.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  const method = methods.find((one) => one === request.method) ?? 'GET'
  return { method, path, headers, body: bodyOf(request) }
}

/** Streams the answer. A stream of events ends with the session. */
function pass(
  response: InnerResponse,
  reply: FastifyReply,
  watchSession: (onEnd: () => void) => Disposable,
): FastifyReply {
  const { body } = response
  const out = new PassThrough()
  let hasEnded = false
  const watch = watchSession(() => {
    hasEnded = true
    body.unpipe(out)
    out.end()
    response[Symbol.dispose]()
  })
  reply.raw.once('close', () => {
    watch[Symbol.dispose]()
    response[Symbol.dispose]()
  })
  // An answer that is cut must not look complete.
  body.once('error', () => {
    if (!hasEnded) out.destroy()
  })
  body.pipe(out)
  // The token was valid, so a 401 is the answer of an agent. It does not mean that the session has ended.
  void reply.code(response.status === 401 ? 403 : response.status)
  return reply.headers(headersOf(response)).send(out)
}

function headersOf({ headers }: InnerResponse): OutgoingHttpHeaders {
  const kept = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && answerHeaders.has(name),
  )
  const type = headers['content-type']
  const isPlain = type === undefined || plainType.test(type)
  return {
    ...Object.fromEntries(kept),
    ...(!isPlain && { 'content-type': 'application/octet-stream', 'content-disposition': 'attachment' }),
    ...documentPolicy,
  }
}

const isRedirect = ({ status }: InnerResponse) => status >= 300 && status < 400 && status !== 304

const redirectRefused = () =>
  new ParleyError('InvalidAgentResponse', {
    status: 502,
    message:
      'The agent answered with a redirect, which the console does not follow: open the address of the agent',
    data: { reason: 'redirect' },
  })
