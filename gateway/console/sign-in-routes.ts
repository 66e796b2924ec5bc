import { createHash } from 'node:crypto'
import { bodyOf } from '@parley/kit/http/request-body'
import { version } from '@parley/kit/process/version'
import { jsonType } from '@parley/wire/codecs/error-answer'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { errorEnvelope } from '@parley/wire/jsonrpc/envelope'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { signInAccount } from '../oauth/accounts/account-sign-in.ts'
import type { Account } from '../oauth/accounts/accounts.ts'
import type { ConsoleCodeFlow } from '../oauth/accounts/console-access.ts'
import { errorPage, pageHeaders, signInPage } from '../oauth/approval/pages.ts'
import { newSecret } from '../oauth/key-files.ts'
import type { ConsoleParts as Parts } from './add-console.ts'
import { sessionEnded } from './browser-sessions.ts'
import { callbackApi, passwordApi, sessionApi, signInApi, signInQuery, signOutApi } from './descriptions.ts'

const pendingSeconds = 600
const startAgain = 'This sign-in has expired or was started in another browser.'

/** Adds the sign-in and the session of the console (spec/operator.md#accounts). */
export function addSignInRoutes(scope: FastifyInstance, parts: Parts): void {
  const { access, sessions } = parts
  scope.get('/console/sign-in', { config: { api: signInApi } }, async (request, reply) => {
    const { return: to } = parseParams(signInQuery, request.query)
    const target = returnPath(to)
    if ((await sessions.find(request)) !== undefined) return reply.redirect(target, 303)
    const elsewhere = atPublicUrl(parts, request)
    if (elsewhere !== undefined) return reply.redirect(elsewhere, 303)
    const pending = { state: newSecret(), verifier: newSecret(), to: target }
    rememberPending(parts, reply, pending)
    void reply.header('cache-control', 'no-store')
    if (access.codeFlow !== undefined) return reply.redirect(authorizeUrl(access.codeFlow, pending), 303)
    return sendPage(reply, 200, signInPage({ host: hostOf(parts), token: pending.state }))
  })
  if (access.codeFlow === undefined) addPasswordForm(scope, parts)
  else addCallback(scope, parts, access.codeFlow)
  scope.get('/console/session', { config: { api: sessionApi } }, async (request, reply) => {
    // A browser without a cookie has not signed in yet, which is no refusal for the audit log.
    if (!sessions.hasCookie(request)) {
      void reply.code(401).header('cache-control', 'no-store').type(jsonType)
      return errorEnvelope(null, sessionEnded())
    }
    const { session } = await sessions.require(request)
    const { person, csrf, expiresAt } = session
    const { production, operatorReadsTexts } = parts.config
    void reply.header('cache-control', 'no-store')
    return {
      name: person.name,
      role: person.role,
      client_id: person.clientId,
      shows_texts: person.role === 'caller' || operatorReadsTexts,
      csrf,
      expires_at: timestampOf(expiresAt * 1_000_000),
      gateway: { url: parts.gatewayUrl, version, did: parts.did ?? null, production },
    }
  })
  scope.post(
    '/console/sign-out',
    { config: { api: signOutApi, audit: 'console.sign_out' } },
    async (request, reply) => {
      const open = await sessions.require(request)
      request.auditTarget = open.session.person.name
      await sessions.end(open, reply)
      return { success: true }
    },
  )
}

/** Adds the form of gateways without an authorization request. */
function addPasswordForm(scope: FastifyInstance, parts: Parts): void {
  const { access, audit, sessions } = parts
  scope.post('/console/sign-in', { config: { api: passwordApi } }, async (request, reply) => {
    sessions.requireSameSite(request)
    const form = new URLSearchParams(bodyOf(request).toString('utf8'))
    const pending = pendingOf(parts, request)
    if (pending === undefined || form.get('token') !== pending.state) return refuse(reply, startAgain)
    const options = {
      ...access,
      audit,
      host: hostOf(parts),
      devicePath: '/console',
      isSecure: isSecure(parts),
    }
    const answer = await signInAccount(options, { form, request, session: pending.state })
    if ('form' in answer) {
      const page = signInPage({ ...answer.form, token: pending.state })
      return sendPage(reply.headers(answer.headers), answer.status, page)
    }
    if (answer.deviceCookie !== undefined) void reply.header('set-cookie', answer.deviceCookie)
    return finish(parts, { request, reply, account: answer.account, to: pending.to })
  })
}

const callbackQuery = z.object({
  code: z.string().max(1024).optional(),
  state: z.string().max(128).optional(),
  iss: z.string().max(2048).optional(),
  error: z.string().max(128).optional(),
})

function addCallback(scope: FastifyInstance, parts: Parts, flow: ConsoleCodeFlow): void {
  scope.get('/console/callback', { config: { api: callbackApi } }, async (request, reply) => {
    const { code, state, iss } = callbackQuery.safeParse(request.query).data ?? {}
    const pending = pendingOf(parts, request)
    // The state shows that this browser has started the sign-in, so an attacker cannot sign it in to another account.
    const isOwn = pending !== undefined && state === pending.state && (iss ?? flow.issuer) === flow.issuer
    if (!isOwn || code === undefined) return refuse(reply, startAgain)
    const account = await redeem(parts, flow, { code, verifier: pending.verifier, request })
    if (account === undefined) return refuse(reply, startAgain)
    return finish(parts, { request, reply, account, to: pending.to })
  })
}

const tokenAnswer = z.object({ access_token: z.string() })

/** Redeems the code at the token endpoint of this process, as every other client would. */
async function redeem(
  { app }: Parts,
  flow: ConsoleCodeFlow,
  { code, verifier, request }: { code: string; verifier: string; request: FastifyRequest },
): Promise<Account | undefined> {
  const credentials = [flow.clientId, flow.clientSecret].map(encodeURIComponent).join(':')
  const response = await app.inject({
    method: 'POST',
    url: `${new URL(flow.issuer).pathname}/token`,
    headers: {
      host: request.headers.host ?? '',
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    remoteAddress: request.ip,
    payload: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: flow.redirectUri,
      code_verifier: verifier,
    }).toString(),
  })
  if (response.statusCode !== 200) return undefined
  return flow.takeAccount(tokenAnswer.parse(response.json()).access_token)
}

async function finish(
  parts: Parts,
  {
    request,
    reply,
    account,
    to,
  }: { request: FastifyRequest; reply: FastifyReply; account: Account; to: string },
): Promise<FastifyReply> {
  void reply.clearCookie(pendingName(parts), { path: '/console' })
  await parts.sessions.start(request, reply, account)
  return reply.header('cache-control', 'no-store').redirect(to, 303)
}

function authorizeUrl({ issuer, clientId, redirectUri }: ConsoleCodeFlow, pending: Pending): string {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'agent:read',
    state: pending.state,
    code_challenge: createHash('sha256').update(pending.verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  return `${issuer}/authorize?${query.toString()}`
}

interface Pending {
  state: string
  verifier: string
  to: string
}

const pendingName = (parts: Parts) => (isSecure(parts) ? '__Secure-parley_sign_in' : 'parley_sign_in')
const isSecure = ({ gatewayUrl }: Parts) => gatewayUrl.startsWith('https:')
const hostOf = ({ gatewayUrl }: Parts) => new URL(gatewayUrl).host

function rememberPending(parts: Parts, reply: FastifyReply, pending: Pending): void {
  const iat = Math.floor(Date.now() / 1000)
  void reply.setCookie(pendingName(parts), parts.access.pending.seal({ ...pending, iat }), {
    path: '/console',
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure(parts),
    maxAge: pendingSeconds,
  })
}

function pendingOf(parts: Parts, request: FastifyRequest): Pending | undefined {
  const cookie = request.cookies[pendingName(parts)]
  const pending = cookie === undefined ? undefined : parts.access.pending.open(cookie)
  return pending !== undefined && pending.iat + pendingSeconds > Date.now() / 1000 ? pending : undefined
}

/** Returns a path of the console, whatever the parameter contains. */
function returnPath(to = '/console/'): string {
  const base = 'http://gateway.invalid'
  const url = URL.parse(to, base)
  const isOwn = url?.origin === base && /^\/console(\/|$)/.test(url.pathname)
  return isOwn ? url.pathname + url.search : '/console/'
}

/**
 * Returns the address of this page at the public URL for a request to another name of the gateway, such as `127.0.0.1`: the
 * cookies must belong to the host to which the OAuth server sends the browser back. A proxy may change the host, so the
 * browser is redirected only once.
 */
function atPublicUrl(parts: Parts, { host, url }: FastifyRequest): string | undefined {
  const target = new URL(url, parts.gatewayUrl)
  if (host === target.host || target.searchParams.has('at')) return undefined
  target.searchParams.set('at', 'public')
  return target.href
}

function refuse(reply: FastifyReply, text: string): FastifyReply {
  return sendPage(reply, 400, errorPage(text, { href: '/console/sign-in', text: 'Sign in' }))
}

function sendPage(reply: FastifyReply, status: number, page: string): FastifyReply {
  return reply.code(status).headers(pageHeaders()).send(page)
}
