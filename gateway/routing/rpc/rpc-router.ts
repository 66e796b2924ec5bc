import { type Authenticator, requireScope } from '@parley/kit/auth/authenticate'
import { cutStalled, releaseWhenRead } from '@parley/kit/http/release-when-read'
import { bodyOf } from '@parley/kit/http/request-body'
import { requireSignedTarget, restType } from '@parley/kit/http/rest-call'
import { authenticateCall, type CallProgress, requireOperation } from '@parley/kit/http/rpc-call'
import type { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import type { Codec, ListOperation } from '@parley/wire/codecs/codec'
import { defaultDialect, methodNotFound, partsOf } from '@parley/wire/codecs/dialects'
import { jsonType } from '@parley/wire/codecs/error-answer'
import { ParleyError } from '@parley/wire/errors'
import { resultEnvelope } from '@parley/wire/jsonrpc/envelope'
import { keyOfTask } from '@parley/wire/model/chosen-task-id'
import { idsOf } from '@parley/wire/model/ids'
import { type Operation, operations } from '@parley/wire/model/operation'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { CallerAccess } from '../../registry/caller-access.ts'
import type { Registry } from '../../registry/registry.ts'
import { callPath, type DispatcherFor, targetOf } from '../forwarding/agent-target.ts'
import type { AgentTokens } from '../forwarding/agent-tokens.ts'
import { BufferedResponse } from '../forwarding/buffered-response.ts'
import { type CallAddress, readCallAt, resultOf } from '../forwarding/call-reader.ts'
import { callerTokenOf, isOperator, operatorTokenRefused } from '../forwarding/caller-token.ts'
import { completeRequest } from '../forwarding/completed-request.ts'
import type { ResponseObserver } from '../forwarding/exchange.ts'
import { type ForwardOptions, forward, type ReportSignal } from '../forwarding/forward.ts'
import { safePath } from '../forwarding/forward-path.ts'
import { forwardNamed, type NamedAgentOptions, namedTarget } from '../forwarding/named-agent.ts'
import { type ReferenceGrants, referencesHeader } from '../forwarding/reference-grants.ts'
import { dialectUnsupported, lacksDialect } from '../forwarding/refusal.ts'
import { agentHasLeft, incompleteHeader, mayBeAt } from '../forwarding/upstream-error.ts'
import type { FeedbackRecorder } from '../learning/feedback.ts'
import type { NamedUses } from '../learning/named-uses.ts'
import { StreamOutcomeObserver } from '../learning/stream-outcome.ts'
import type { Incoming } from '../placement/sending.ts'
import type { TaskLocator } from '../placement/task-locator.ts'
import type { Route, RoutingStore } from '../store/routing-store.ts'
import type { MergedLists } from './merged-lists.ts'
import type { MessageRouter } from './message-router.ts'

export interface RpcRouterOptions {
  authenticator: Authenticator
  access: CallerAccess
  answers: AnswerBudget
  registry: Registry
  store: RoutingStore
  messages: MessageRouter
  taskLocator: TaskLocator
  lists: MergedLists
  feedback: FeedbackRecorder
  uses: Pick<NamedUses, 'forget'>
  dispatcherFor: DispatcherFor
  grants: ReferenceGrants
  reportSignal: ReportSignal
  tokens: AgentTokens
  /** For calls that name an agent at the gateway's own address. */
  named: NamedAgentOptions
  log: Log
}

/** Fields of a call that its error response needs. */
export interface RoutedCall extends CallProgress {
  codec?: Codec
  operation?: Operation | undefined
  /** The headers of the answer that state the version of the dialect. */
  headers?: Record<string, string>
}

/**
 * Routes calls that name no agent (spec/gateway-routing.md#calls-without-an-agent). Caller, body and scope are checked in the
 * same order as on an agent.
 */
export class RpcRouter {
  readonly #options: RpcRouterOptions

  constructor(options: RpcRouterOptions) {
    this.#options = options
  }

  /** @throws ParleyError, in which case `progress` has the id and the dialect of the error */
  async answer(
    request: FastifyRequest,
    reply: FastifyReply,
    at: CallAddress,
    progress: RoutedCall,
  ): Promise<FastifyReply> {
    const body = bodyOf(request)
    const { headers, method: httpMethod, url } = request
    const bytes = { headers, method: httpMethod, url, bytes: body, pathMethod: at.method }
    const caller = await authenticateCall(this.#options.authenticator, bytes, progress)
    request.callerId = caller.id
    const claim = this.#options.answers.open(caller.id)
    releaseWhenRead(reply, claim)
    // The claim accounts for the body until the agent has responded.
    request.body = undefined
    claim.reserve(body.byteLength)
    request.token = callerTokenOf(caller)
    const { query } = partsOf(url)
    const read = readCallAt(at, { headers, method: httpMethod, url, query }, body, progress)
    const { id, codec, rest, method, operation, params } = read
    Object.assign(progress, { codec, operation })
    if (operation === undefined) throw methodNotFound(method, codec)
    request.rpcMethod = method
    progress.headers = codec.negotiate({ path: at.path, query, headers, method })
    requireOperation(caller, operation)
    if (rest !== undefined) requireSignedTarget(caller, operation, rest)
    const { target } = operations[operation]
    if (isOperator(request.token)) throw operatorTokenRefused()
    const tenant = codec.readTenant(params)
    if (tenant !== undefined) return this.#toNamed({ request, reply, address: at, body }, tenant)
    const agents = await this.#options.access.agentsFor(caller)
    const call = { body, codec, rest, method, operation, params }
    const incoming: Incoming = { request, reply, ...call, owner: caller.id, agents, claim }
    if (target === 'message') return this.#options.messages.route(incoming)
    if (target === 'task') return this.#toTask(incoming)
    if (target === 'context') return this.#clearContext(incoming)
    if (target === 'server') throw new ParleyError('AuthenticatedExtendedCardNotConfigured')
    const page = await this.#list(incoming, target === 'tasks' ? 'listTasks' : 'listContexts')
    void reply.headers(progress.headers)
    return rest === undefined
      ? sendJson(reply, jsonType, resultEnvelope(id, page))
      : sendJson(reply, restType(headers, rest.binding), page)
  }

  /** A call at the gateway's own address that names an agent is forwarded as below `/agents/{slug}`. */
  async #toNamed({ request, reply, ...call }: NamedCall, slug: string): Promise<FastifyReply> {
    const path = safePath(partsOf(request.url).path)
    const named = await namedTarget(request, slug, path, this.#options.named)
    return forwardNamed(request, reply, { ...call, ...named }, this.#options.named)
  }

  async #toTask(incoming: Incoming): Promise<FastifyReply> {
    const taskId = incoming.codec.readTaskId(incoming.params)
    if (incoming.operation === 'getTask') await this.#applyGrant(incoming, taskId)
    const key = keyOfTask(incoming.request.headers['idempotency-key'], taskId)
    const route =
      incoming.operation === 'cancelTask' && key !== undefined
        ? await this.#findOrPrevent(taskId, key, incoming)
        : await this.#find('task', taskId, incoming)
    const watch = this.#observerOf(incoming, route)
    return this.#forward(incoming, route, {
      watch: watch && (({ status }) => (status === 200 ? watch() : undefined)),
    })
  }

  /** @throws ParleyError TaskNotFound if no agent has received the message that creates the task, and none will */
  async #findOrPrevent(taskId: string, key: string, { owner }: Incoming): Promise<Route> {
    const route = await this.#options.messages.routeOrPrevent(owner, key, taskId)
    if (route !== undefined) return route
    throw new ParleyError('TaskNotFound', { data: { taskId, reason: 'prevented' } })
  }

  /** An agent reads a task that the client's message refers to, and the client's token applies instead of its own. */
  async #applyGrant(incoming: Incoming, taskId: string): Promise<void> {
    const { request, owner } = incoming
    const { authenticator, registry, grants, access } = this.#options
    const header = request.headers[referencesHeader]
    const grant = typeof header === 'string' ? await grants.find(header, taskId) : undefined
    if (grant === undefined) return
    const entry = registry.find(grant.agent)
    if (entry === undefined || ![entry.did, entry.owner].includes(owner)) return
    const headers = { authorization: `Bearer ${grant.token}` }
    const client = await authenticator.identify({ headers, method: 'POST', url: '/' })
    requireScope(client, 'agent:read')
    request.token = callerTokenOf(client)
    incoming.owner = client.id
    incoming.agents = await access.agentsFor(client)
  }

  async #clearContext(incoming: Incoming): Promise<FastifyReply> {
    const { codec, owner, params } = incoming
    const { contextId } = codec.readParams('clearContext', params, idsOf(owner))
    const route = await this.#find('context', contextId, incoming)
    return this.#forward(incoming, route, {
      // The caller's next message must not find the routes.
      rewrite: async ({ status }, bytes) => {
        if (status === 200 && codec.isSuccess(resultOf(incoming, bytes)))
          await this.#removeContext(owner, contextId, route.agent)
        return bytes
      },
    })
  }

  async #removeContext(owner: string, contextId: string, agent: string): Promise<void> {
    try {
      const { feedback, store, uses } = this.#options
      await Promise.all([
        store.removeContext(owner, contextId),
        feedback.forgetContext(owner, contextId),
        uses.forget(owner, agent),
      ])
    } catch (error) {
      this.#options.log.error(
        { err: error },
        'failed to remove the routes and training examples of a cleared context',
      )
    }
  }

  async #find(kind: 'task' | 'context', id: string, { request, owner, agents }: Incoming): Promise<Route> {
    const caller = { owner, agents, headers: request.headers, token: request.token, requestId: request.id }
    const found = await this.#options.taskLocator.find(kind, id, caller)
    if ('route' in found) return found.route
    // "Not found" would be wrong if an unresponsive agent has the task.
    if (found.silent.length > 0) throw mayBeAt(found.silent, kind)
    const headers =
      found.unknown.length === 0 ? {} : { 'x-parley-incomplete': incompleteHeader(found.unknown) }
    if (kind === 'task') throw new ParleyError('TaskNotFound', { data: { taskId: id }, headers })
    throw new ParleyError('ContextNotFound', { data: { contextId: id }, headers })
  }

  async #forward(
    { request, reply, body, agents, method, codec, rest }: Incoming,
    route: Route,
    options: Pick<ForwardOptions, 'watch' | 'rewrite'>,
  ): Promise<FastifyReply> {
    const { dispatcherFor, reportSignal, tokens, access } = this.#options
    const entry = agents.find(route.agent)
    if (entry === undefined) {
      await access.auditHidden(method, route.agent, request.token?.caller, request)
      throw agentHasLeft(route.kind === 'context' ? 'context' : 'task')
    }
    const path = callPath(entry, request, codec)
    if (rest !== undefined) safePath(path)
    const target = await tokens.authorize(targetOf(entry, path, dispatcherFor), request.token)
    const { headers } = request
    const sent = codec === defaultDialect ? completeRequest(entry, { headers, body }) : { body }
    return forward(request, reply, target, sent, {
      reportSignal,
      headers: { 'x-agent': entry.slug },
      ...options,
      check: (head) => {
        if (lacksDialect(entry, { path: partsOf(path).path, rest }, head))
          throw dialectUnsupported(entry.slug)
      },
    })
  }

  /** Observes responses that carry a rating or the outcome of a task with pending training words. */
  #observerOf(incoming: Incoming, route: Route): (() => ResponseObserver) | undefined {
    const { codec, operation, params, claim } = incoming
    const { feedback } = this.#options
    if (operation === 'giveFeedback') {
      const rating = codec.readRating(params)
      if (rating === undefined) return undefined
      return () =>
        new BufferedResponse(claim, (bytes) => {
          if (codec.isSuccess(resultOf(incoming, bytes))) feedback.recordRating(route, rating)
        })
    }
    if (route.words === undefined) return undefined
    if (operation === 'resubscribe') return () => new StreamOutcomeObserver(feedback, route, codec)
    if (operation !== 'getTask') return undefined
    return () =>
      new BufferedResponse(claim, (bytes) => {
        const outcome = codec.readEnd(resultOf(incoming, bytes))
        if (outcome !== undefined) feedback.recordOutcome(route, outcome)
      })
  }

  /** Returns the JSON of the merged list. */
  async #list(incoming: Incoming, operation: ListOperation): Promise<string> {
    const { codec, reply } = incoming
    const { items, incomplete, ...page } = await this.#options.lists.list({ ...incoming, operation })
    const { json, headers = {} } = codec.writeMergedList(operation, items, page)
    void reply.headers(headers)
    if (incomplete.length > 0) void reply.header('x-parley-incomplete', incompleteHeader(incomplete))
    return JSON.stringify(json)
  }
}

interface NamedCall {
  request: FastifyRequest
  reply: FastifyReply
  address: CallAddress
  body: Buffer
}

function sendJson(reply: FastifyReply, type: string, json: string): FastifyReply {
  cutStalled(reply.raw)
  return reply.header('cache-control', 'no-store').type(type).send(json)
}
