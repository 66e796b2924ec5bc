import { Readable } from 'node:stream'
import { hostHeaderValidation, originValidation } from '@modelcontextprotocol/fastify'
import { localhostAllowedHostnames, type McpHttpHandler } from '@modelcontextprotocol/server'
import { type AuthenticatedCaller, type Authenticator, requireScope } from '@parley/kit/auth/authenticate'
import { bodyOf } from '@parley/kit/http/request-body'
import type { RequestLimits } from '@parley/kit/http/request-limits'
import { eventStream, type OperationDescription } from '@parley/kit/http/route-description'
import { inRequestSpan } from '@parley/kit/http/trace-requests'
import type { Log } from '@parley/kit/process/log'
import { type TraceContext, traceContextIn } from '@parley/kit/telemetry/trace-context'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { AgentCalls } from '../calls/agent-calls.ts'
import { mcpRecipient } from '../http/protected-resource-routes.ts'
import type { CallerAccess } from '../registry/caller-access.ts'
import type { Negotiator } from '../routing/negotiation/negotiator.ts'
import { type DirectAnswerOptions, directAnswer, directRequestIn } from './direct-answers.ts'
import type { Exchange } from './exchange.ts'
import { agentFinder } from './find-agent.ts'
import { createMcpServer } from './mcp-server.ts'
import type { ElicitationSupport } from './pauses.ts'
import { isResponse, PushedQuestions } from './pushed-questions.ts'
import { Sessions } from './sessions.ts'
import { ToolCalls, type Waits } from './tool-calls.ts'
import { ToolCatalog } from './tool-catalog.ts'

export interface McpRoutes {
  calls: AgentCalls
  access: CallerAccess
  negotiator: Negotiator
  authenticator: Authenticator
  gatewayUrl: string
  /** Whether tokens without an audience are rejected. */
  requiresAudience: boolean
  /** Further origins with pages that may send requests. */
  corsOrigins: readonly string[]
  waits: Waits
  limits: Pick<RequestLimits, 'countFurther'> | undefined
  log: Log
}

/** A running MCP server. Closing it ends the open subscriptions. */
export interface McpRoutesHandle {
  /** Notifies subscribers that the list of tools has changed. */
  toolsChanged: () => void
}

interface Route {
  Params: { slug?: string }
}

const jsonRpc = z.union([z.looseObject({ jsonrpc: z.literal('2.0') }), z.array(z.looseObject({}))])
const protocolHeaders = z.object({
  'mcp-protocol-version': z.string().optional(),
  'mcp-method': z.string().optional(),
  'mcp-name': z.string().optional(),
  'mcp-session-id': z.string().optional(),
})

/** The operations of both addresses, by method. */
const described = {
  POST: {
    summary: 'Send a message of the Model Context Protocol',
    description:
      'Messages, results and errors are those of MCP (Streamable HTTP). See docs/spec/mcp.md#versions.',
    tag: 'mcp',
    access: 'token',
    headers: protocolHeaders,
    body: { json: jsonRpc },
    responses: {
      200: {
        description: 'The response, or a stream that ends with it',
        json: jsonRpc,
        content: eventStream,
      },
      202: { description: 'A notification or a response was accepted' },
    },
    errors: ['ParseError', 'NotFound', 'InsufficientPermissions', ['InvalidRequest', 415]],
    errorContent: { 'application/json': jsonRpc },
  },
  GET: {
    summary: 'Streams of earlier revisions, which the gateway does not open',
    tag: 'mcp',
    access: 'token',
    responses: { 405: { description: 'The address has no stream', json: jsonRpc } },
    errors: ['NotFound', 'InsufficientPermissions'],
  },
  DELETE: {
    summary: 'End a session of an earlier revision',
    tag: 'mcp',
    access: 'token',
    responses: {
      204: { description: 'The session was ended' },
      405: { description: 'The request names no session', json: jsonRpc },
    },
    errors: ['NotFound', 'InsufficientPermissions'],
  },
} satisfies Record<string, OperationDescription>

/** Adds MCP over Streamable HTTP for all agents and for each agent (spec/mcp.md#versions). */
export function addMcpRoutes(app: FastifyInstance, routes: McpRoutes): McpRoutesHandle {
  const exchanges = new WeakMap<Request, Exchange>()
  const catalog = new ToolCatalog()
  const { negotiator, waits, log } = routes
  const questions = new PushedQuestions()
  const sessions = new Sessions()
  const subscriptions = new Map<string, number>()
  const findAgent = agentFinder(negotiator)
  const toolCalls = new ToolCalls({ catalog, questions, findAgent, ...waits })
  const exchangeOf = (request: Request) => {
    const exchange = exchanges.get(request)
    if (exchange === undefined) throw new Error('The request has no exchange')
    return exchange
  }
  const handler = createMcpServer({ catalog, toolCalls, exchangeOf, log })
  const serve = async (request: FastifyRequest<Route>, reply: FastifyReply) => {
    const bytes = bodyOf(request)
    const recipient = mcpRecipient(routes, request.params.slug)
    const caller = await routes.authenticator.authenticateAt(recipient, request, bytes)
    request.callerId = caller.id
    const body = request.method === 'POST' && bytes.length > 0 ? parseJson(bytes) : undefined
    return inRequestSpan(request, reply, traceIn(body), () => answer({ request, caller, body }, reply))
  }
  const answer = async ({ request, caller, body }: Authenticated, reply: FastifyReply) => {
    if (Array.isArray(body)) await routes.limits?.countFurther(request, body.length - 1)
    const session = sessionOf(request, sessions)
    if (request.method === 'DELETE' && session !== undefined) {
      sessions.end(session)
      return reply.code(204).send()
    }
    const exchange = await exchangeFor(routes, {
      request,
      caller,
      body,
      session: sessions.supportIn(session),
    })
    if (isResponse(body)) {
      await questions.receive(body, exchange.calls, exchange.agent)
      return reply.code(202).send()
    }
    const created = sessions.idFor(body)
    if (created !== undefined) void reply.header('mcp-session-id', created)
    if (exchange.methods.includes('subscriptions/listen')) countSubscription(subscriptions, caller.id, reply)
    return respond(handler, reply, { request, body, exchange, exchanges, catalog, toolCalls })
  }
  const onRequest = originChecks(routes)
  for (const url of ['/mcp', '/agents/:slug/mcp'])
    for (const [method, api] of Object.entries(described))
      app.route<Route>({
        method,
        url,
        exposeHeadRoute: false,
        onRequest,
        config: { api, trace: 'route' },
        handler: serve,
      })
  app.addHook('preClose', async () => handler.close())
  return { toolsChanged: () => handler.notify.toolsChanged() }
}

/**
 * Pages of other sites may not send requests. The Host header is checked only if the gateway is at an address of this
 * machine, which a page could reach by a DNS name of the attacker; proxies may send another one.
 */
function originChecks({ gatewayUrl, corsOrigins }: McpRoutes) {
  const { hostname } = new URL(gatewayUrl)
  const local = localhostAllowedHostnames()
  const isLocal = local.includes(hostname)
  const origins = corsOrigins.flatMap((origin) => (URL.canParse(origin) ? [new URL(origin).hostname] : []))
  const origin = originValidation([hostname, ...(isLocal ? local : []), ...origins])
  return [
    ...(isLocal ? [hostHeaderValidation([hostname, ...local])] : []),
    ...(corsOrigins.includes('*') ? [] : [origin]),
  ]
}

/** @throws ParleyError NotFound for a session that does not exist, so that the client begins another one */
function sessionOf({ headers }: FastifyRequest<Route>, sessions: Sessions): string | undefined {
  const { 'mcp-session-id': id, 'mcp-protocol-version': revision } = headers
  // Later revisions have no sessions and ignore the header.
  if (typeof id !== 'string' || (typeof revision === 'string' && revision >= '2026')) return undefined
  if (sessions.isOpen(id)) return id
  throw new ParleyError('NotFound', { message: 'The session does not exist', data: { reason: 'session' } })
}

/** The subscriptions of one caller, so that none uses up those of the gateway. */
const subscriptionsPerCaller = 64

/**
 * Counts a subscription until its response is closed.
 * @param open the number of open subscriptions by caller
 * @throws ParleyError TooManyRequests
 */
function countSubscription(open: Map<string, number>, callerId: string, { raw }: FastifyReply): void {
  const count = open.get(callerId) ?? 0
  if (count >= subscriptionsPerCaller)
    throw new ParleyError('TooManyRequests', {
      message: `You have ${count} open subscriptions: close one of them first`,
      data: { reason: 'subscriptions' },
      headers: { 'retry-after': '10' },
    })
  if (raw.closed) return
  open.set(callerId, count + 1)
  raw.once('close', () => {
    const left = (open.get(callerId) ?? 1) - 1
    if (left === 0) open.delete(callerId)
    else open.set(callerId, left)
  })
}

/** Returns the trace that `_meta` of the message names. A batch may contain several, of which none is used. */
function traceIn(body: unknown): TraceContext | undefined {
  const params = isObject(body) ? body['params'] : undefined
  const meta = isObject(params) ? params['_meta'] : undefined
  return isObject(meta) ? traceContextIn(meta) : undefined
}

interface Authenticated {
  request: FastifyRequest<Route>
  caller: AuthenticatedCaller
  body: unknown
}

interface AuthenticatedRequest extends Authenticated {
  session: ElicitationSupport
}

/** @throws ParleyError NotFound for an agent that the caller may not see, InsufficientPermissions */
async function exchangeFor(
  { access, calls }: McpRoutes,
  { request, caller, body, session }: AuthenticatedRequest,
): Promise<Exchange> {
  const { slug: agent } = request.params
  const directory = await access.agentsFor(caller)
  if (agent !== undefined && directory.bySlug(agent) === undefined) {
    await access.auditHidden('mcp', agent, caller, request)
    throw new ParleyError('NotFound', { data: { reason: 'agent' } })
  }
  const messages = [body].flat().filter(isObject)
  const methods = messages.flatMap(({ method }) => (typeof method === 'string' ? [method] : []))
  const [method] = methods
  if (method !== undefined && methods.length === 1)
    request.rpcMethod = knownMethods.has(method) ? method : 'other'
  for (const message of messages) {
    const scope = requiredScope(message)
    if (scope !== undefined) requireScope(caller, scope)
  }
  return {
    request: request as FastifyRequest,
    caller,
    calls: calls.as(request as FastifyRequest, caller),
    directory,
    agent,
    methods,
    session,
    push: notConnected,
  }
}

const notConnected = () => Promise.reject(new Error('The server of this request is not connected'))

const readTools = new Set<unknown>(['find_agent', 'get_task'])
const knownMethods = new Set([
  'tools/list',
  'tools/call',
  'resources/read',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
])

function requiredScope({ method, params }: Record<string, unknown>) {
  switch (method) {
    case 'tools/call':
      return isObject(params) && readTools.has(params['name']) ? 'agent:read' : 'agent:write'
    case 'tasks/update':
    case 'tasks/cancel':
      return 'agent:write'
    case 'tools/list':
    case 'resources/read':
    case 'tasks/get':
      return 'agent:read'
    default:
      return undefined
  }
}

interface Served extends Omit<DirectAnswerOptions, 'signal'> {
  request: FastifyRequest<Route>
  body: unknown
  exchange: Exchange
  exchanges: WeakMap<Request, Exchange>
}

async function respond(
  handler: McpHttpHandler,
  reply: FastifyReply,
  { request, body, exchange, exchanges, ...tools }: Served,
): Promise<FastifyReply> {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableEnded) gone.abort()
  })
  const direct = directRequestIn(request as FastifyRequest, body)
  if (direct !== undefined) {
    const answer = await directAnswer(direct, exchange, { ...tools, signal: gone.signal })
    void reply.headers({ 'content-type': 'application/json', 'cache-control': 'no-store' })
    if (typeof answer === 'string') return reply.send(answer)
    const bytes = answer.reduce((sum, piece) => sum + piece.byteLength, 0)
    return reply.header('content-length', bytes).send(Readable.from(answer, { objectMode: false }))
  }
  const web = new Request(`http://mcp.invalid${request.url}`, {
    method: request.method,
    headers: headersOf(request),
    signal: gone.signal,
  })
  exchanges.set(web, exchange)
  const response = await handler.fetch(web, body === undefined ? {} : { parsedBody: body })
  for (const [name, value] of response.headers) void reply.header(name, value)
  void reply.code(response.status).header('cache-control', 'no-store')
  if (response.body === null) return reply.send()
  if (exchange.toolsJson !== undefined)
    return reply.send(withTools(await response.text(), exchange.toolsJson))
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  return reply.send(isStream ? Readable.fromWeb(response.body as never) : await response.text())
}

const noTools = '"tools":[]'

/** Inserts the tools. The result begins with the empty list, and strings before it contain no unescaped quotes. */
function withTools(text: string, json: Buffer): Buffer {
  const at = text.indexOf(noTools)
  if (at === -1) return Buffer.from(text)
  const [before, after] = [text.slice(0, at + noTools.length - 2), text.slice(at + noTools.length)]
  return Buffer.concat([Buffer.from(before), json, Buffer.from(after)])
}

/** The headers that the protocol reads. The token stays here. */
const forwardedHeaders = [
  'accept',
  'content-type',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'mcp-session-id',
  'last-event-id',
]

function headersOf({ headers }: FastifyRequest<Route>): Headers {
  const kept = new Headers()
  for (const name of forwardedHeaders) {
    const value = headers[name]
    if (typeof value === 'string') kept.set(name, value)
  }
  return kept
}
