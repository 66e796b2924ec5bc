import { canonicalResource } from '@parley/kit/auth/protected-resource'
import { addressOf } from '@parley/kit/http/request-limits'
import type { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Client, Interaction, Provider } from 'oidc-provider'
import { signInAccount } from '../accounts/account-sign-in.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { consoleClientId, rememberAccount } from '../accounts/console-client.ts'
import { isLoopback } from '../client-rules.ts'
import { keepApproved, provenanceOf } from '../clients/unverified-client.ts'
import { approvalApi, decisionApi } from '../descriptions/approval.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { operatorAccount } from '../oidc/configuration.ts'
import {
  type Approval,
  approvalPage,
  errorPage,
  pageHeaders,
  type ServerName,
  signInPage,
  unavailableText,
} from './pages.ts'
import { deviceDays, type LimitName, type SignIn } from './sign-in.ts'

const formMaxBytes = 4096

export interface InteractionOptions {
  provider: Provider
  signIn: SignIn
  audit: Audit
  log: Log
  store: Pick<OAuthStore, 'find' | 'upsert'>
  /** The path prefix of all approval pages. */
  prefix: string
  /** The people who may sign in to the console. */
  people: { accounts: Accounts; signIn: SignIn }
  /** Returns the agent that a resource of the gateway names. */
  agentAt: (resource: string) => { name: string } | undefined
}

/** Adds the page on which a person approves an application with the machine's sign-in code, or refuses it. */
export function mountInteraction(scope: FastifyInstance, options: InteractionOptions): void {
  const { provider, log } = options
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: formMaxBytes },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  )
  scope.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    if (error instanceof ParleyError && error.error === 'Unavailable')
      return sendPage(reply.headers(error.headers ?? {}), error.status, errorPage(unavailableText))
    const status = error.statusCode ?? 500
    if (status >= 500) log.error({ err: error }, 'approval page failed')
    const text = status >= 500 ? 'Something went wrong. Start again from the application.' : gone
    return sendPage(reply, status, errorPage(text))
  })
  const path = `${options.prefix}/interaction/:uid`
  scope.get<{ Params: { uid: string } }>(path, { config: { api: approvalApi } }, async (request, reply) => {
    const interaction = await findInteraction(provider, request, reply)
    if (isForConsole(interaction)) return sendPage(reply, 200, signInPage({ host: hostOf(provider) }))
    const { approval, formTarget } = await describe(options, interaction)
    return sendPage(reply, 200, approvalPage(approval), formTarget)
  })
  scope.post<{ Params: { uid: string } }>(path, { config: { api: decisionApi } }, async (request, reply) => {
    requireSameOrigin(request, provider.issuer)
    const interaction = await findInteraction(provider, request, reply)
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
    if (isForConsole(interaction)) return signIn(options, interaction, form, request, reply)
    if (form.get('decision') === 'approve') return approve(options, interaction, form, request, reply)
    if (form.get('decision') !== 'refuse') throw Object.assign(new Error(gone), { statusCode: 400 })
    const target = String(interaction.params['client_id'])
    options.audit.record({ ...operatorAt(request), target, allowed: false, reason: 'refused' })
    const result = { error: 'access_denied', error_description: 'the operator refused the request' }
    return finish(provider, request, reply, result)
  })
}

const gone = 'This request has expired or belongs to another browser. Start again from the application.'

/**
 * Refuses a form that a page of another origin has sent, in addition to the cookie's `SameSite`. `Origin` is `null` for the form of
 * this page in browsers that apply its referrer policy, so it decides only for browsers that do not send `Sec-Fetch-Site`.
 */
function requireSameOrigin({ headers }: FastifyRequest, issuer: string): void {
  const { origin = 'null', 'sec-fetch-site': site } = headers
  const isSame =
    site === undefined
      ? origin === 'null' || origin === new URL(issuer).origin
      : site === 'same-origin' || site === 'none'
  if (!isSame) throw Object.assign(new Error(gone), { statusCode: 403 })
}

async function approve(
  options: InteractionOptions,
  interaction: Interaction,
  form: URLSearchParams,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { provider, signIn, audit, prefix } = options
  const { approval, client, formTarget } = await describe(options, interaction)
  const clientId = approval.clientId
  const answer = await signIn.check({
    code: form.get('code') ?? '',
    session: interaction.uid,
    address: addressOf(request),
    device: deviceOf(request),
  })
  if (!answer.accepted) {
    const attempt = { ...operatorAt(request), who: undefined, target: clientId }
    audit.record({ ...attempt, allowed: false, reason: 'wrong sign-in code' })
    const wait = answer.waitSeconds > 0
    if (wait) void reply.header('retry-after', String(answer.waitSeconds))
    const error = wait ? tooManyCodes(answer.waitSeconds, answer.limit) : 'The code is wrong.'
    return sendPage(reply, wait ? 429 : 403, approvalPage({ ...approval, error }), formTarget)
  }
  if (answer.device !== undefined) {
    const secure = provider.issuer.startsWith('https:') ? '; Secure' : ''
    const attributes = `Path=${prefix}/interaction; Max-Age=${deviceDays * 86_400}; HttpOnly; SameSite=Strict${secure}`
    void reply.header('set-cookie', `${deviceCookie}=${answer.device}; ${attributes}`)
  }
  const grant = new provider.Grant({ accountId: operatorAccount, clientId })
  grant.addOIDCScope(approval.scopes.join(' '))
  for (const resource of approval.resources) grant.addResourceScope(resource, approval.scopes.join(' '))
  const grantId = await grant.save()
  await keepApproved(options.store, client, provenanceOf(client['provenance']))
  audit.record({
    ...operatorAt(request),
    target: clientId,
    allowed: true,
    reason: approval.scopes.join(' '),
  })
  const login = { accountId: operatorAccount, remember: false }
  return finish(provider, request, reply, { login, consent: { grantId } })
}

const isForConsole = ({ params }: Interaction) => params['client_id'] === consoleClientId
const hostOf = ({ issuer }: Provider) => new URL(issuer).host

/** Signs a person in to the console. The authorization code names the account by its grant. */
async function signIn(
  options: InteractionOptions,
  interaction: Interaction,
  form: URLSearchParams,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { provider, people, audit, prefix, store } = options
  const isSecure = provider.issuer.startsWith('https:')
  const answer = await signInAccount(
    { ...people, audit, host: hostOf(provider), devicePath: `${prefix}/interaction`, isSecure },
    { form, request, session: interaction.uid },
  )
  if ('form' in answer) return sendPage(reply.headers(answer.headers), answer.status, signInPage(answer.form))
  if (answer.deviceCookie !== undefined) void reply.header('set-cookie', answer.deviceCookie)
  const grant = new provider.Grant({ accountId: operatorAccount, clientId: consoleClientId })
  grant.addOIDCScope('agent:read')
  const grantId = await grant.save()
  await rememberAccount(store, grantId, answer.account)
  const login = { accountId: operatorAccount, remember: false }
  return finish(provider, request, reply, { login, consent: { grantId } })
}

const deviceCookie = 'parley_device'

function deviceOf(request: FastifyRequest): string | undefined {
  return /(?:^|;) *parley_device=([\w-]{43})(?:;|$)/.exec(request.headers.cookie ?? '')?.[1]
}

function tooManyCodes(waitSeconds: number, limit: LimitName | undefined): string {
  const wait = `Wait ${waitSeconds} second${waitSeconds === 1 ? '' : 's'}`
  if (limit === 'session') return `Too many wrong codes. ${wait}, or start again from the application.`
  if (limit === 'everybody') return `Too many codes were entered at this server. ${wait} and try again.`
  return `Too many codes were entered from your address. ${wait}, or use another address.`
}

/** Returns the audit fields of a decision by the operator, whom the sign-in code authenticates. */
function operatorAt(request: FastifyRequest) {
  return { who: operatorAccount, address: request.ip, action: 'oauth.approve', requestId: request.id }
}

/** @throws Error with a 4xx status if the cookie does not match the address */
async function findInteraction(
  provider: Provider,
  request: FastifyRequest<{ Params: { uid: string } }>,
  reply: FastifyReply,
): Promise<Interaction> {
  const interaction = await provider.interactionDetails(request.raw, reply.raw)
  if (interaction.uid !== request.params.uid) throw Object.assign(new Error(gone), { statusCode: 400 })
  return interaction
}

async function describe(
  options: Pick<InteractionOptions, 'provider' | 'agentAt' | 'prefix'>,
  { params }: Interaction,
): Promise<{ approval: Approval; client: Client; formTarget: string }> {
  const { provider } = options
  const clientId = String(params['client_id'])
  const client = await provider.Client.find(clientId)
  if (client === undefined) throw Object.assign(new Error(gone), { statusCode: 400 })
  const redirect = new URL(String(params['redirect_uri']))
  const resources = [params['resource'] ?? []].flat().map(String)
  const approval: Approval = {
    clientId,
    clientName: client.clientName,
    scopes: typeof params['scope'] === 'string' ? params['scope'].split(' ') : [],
    resources,
    serverNames: resources.map((resource) => serverName(resource, options)),
    provenance: client['managed'] === true ? 'managed' : (provenanceOf(client['provenance']) ?? 'registered'),
    redirectHost: redirect.host,
    isOnThisDevice: isLoopback(redirect.href),
    host: new URL(provider.issuer).host,
  }
  // Browsers also apply form-action to later redirects. It does not support IPv6 hosts.
  const formTarget = redirect.hostname.startsWith('[') ? redirect.protocol : redirect.origin
  return { approval, client, formTarget }
}

/** Returns what a resource of the gateway is. Undefined for other servers. */
function serverName(
  resource: string,
  { provider, agentAt, prefix }: Pick<InteractionOptions, 'provider' | 'agentAt' | 'prefix'>,
): ServerName | undefined {
  const gateway = canonicalResource(provider.issuer.slice(0, provider.issuer.length - prefix.length))
  const name = canonicalResource(resource)
  const through = {
    [gateway]: {},
    [`${gateway}/mcp`]: { through: 'MCP' },
    [`${gateway}/v1`]: { through: 'the OpenAI-compatible API' },
  }
  const agent = agentAt(resource)?.name
  if (agent === undefined) return through[name]
  return name.endsWith('/mcp') ? { agent, through: 'MCP' } : { agent }
}

async function finish(
  provider: Provider,
  request: FastifyRequest,
  reply: FastifyReply,
  result: Parameters<Provider['interactionResult']>[2],
): Promise<FastifyReply> {
  const returnTo = await provider.interactionResult(request.raw, reply.raw, result, {
    mergeWithLastSubmission: false,
  })
  return reply.header('cache-control', 'no-store').redirect(returnTo, 303)
}

function sendPage(reply: FastifyReply, status: number, page: string, formTarget = ''): FastifyReply {
  return reply.code(status).headers(pageHeaders(formTarget)).send(page)
}
