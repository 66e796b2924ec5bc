import { type Authenticator, requireScope } from '@parley/kit/auth/authenticate'
import { cutStalled, releaseWhenRead } from '@parley/kit/http/release-when-read'
import { authenticateCall, type CallProgress, readCall } from '@parley/kit/http/rpc-call'
import type { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { uuid } from '@parley/wire/codecs/parley/message'
import { contextsClear, parseParams } from '@parley/wire/codecs/parley/params'
import { wireObject } from '@parley/wire/codecs/parley/spelling'
import { ParleyError } from '@parley/wire/errors'
import { isObject, type RequestId, resultEnvelope } from '@parley/wire/jsonrpc/envelope'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Registry } from '../../registry/registry.ts'
import { resultIn } from '../forwarding/agent-query.ts'
import { type DispatcherFor, rpcPath, targetOf } from '../forwarding/agent-target.ts'
import { BufferedResponse } from '../forwarding/buffered-response.ts'
import { completeRequest } from '../forwarding/completed-request.ts'
import type { ResponseObserver } from '../forwarding/exchange.ts'
import { type ReportSignal, relay } from '../forwarding/relay.ts'
import { operatorTokenRefused, tokenInfoOf } from '../forwarding/token-forwarding.ts'
import { agentHasLeft, incompleteHeader, mayBeAt } from '../forwarding/upstream-error.ts'
import type { FeedbackRecorder } from '../learning/feedback.ts'
import { StreamOutcomeObserver } from '../learning/stream-outcome.ts'
import type { Incoming } from '../placement/sending.ts'
import type { TaskLocator } from '../placement/task-locator.ts'
import type { Route, RoutingStore } from '../store/routing-store.ts'
import type { MergedLists } from './merged-lists.ts'
import type { MessageRouter } from './message-router.ts'
import { rpcMethods } from './rpc-methods.ts'

export interface RpcRouterOptions {
  authenticator: Authenticator
  answers: AnswerBudget
  registry: Registry
  store: RoutingStore
  messages: MessageRouter
  taskLocator: TaskLocator
  gather: MergedLists
  lessons: FeedbackRecorder
  dispatcherFor: DispatcherFor
  reportSignal: ReportSignal
  /** Public address of the gateway. */
  gatewayUrl: string
  log: Log
}

const taskIn = wireObject({ taskId: uuid }, { taskId: ['id'] })
const feedbackIn = wireObject({ rating: z.int().min(1).max(5).optional().catch(undefined) })

/**
 * Routes JSON-RPC calls that name no agent (spec/gateway-routing.md#json-rpc-without-an-agent). Caller, body and scope are
 * checked in the same order as on an agent.
 */
export class RpcRouter {
  readonly #options: RpcRouterOptions

  constructor(options: RpcRouterOptions) {
    this.#options = options
  }

  /** @throws ParleyError; `progress.id` is then the id for the error envelope */
  async answer(
    request: FastifyRequest,
    reply: FastifyReply,
    pathMethod: string | undefined,
    progress: CallProgress,
  ): Promise<FastifyReply> {
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
    const call = { headers: request.headers, bytes: body, pathMethod }
    const caller = await authenticateCall(this.#options.authenticator, call, progress)
    request.callerId = caller.id
    const claim = this.#options.answers.open(caller.id)
    releaseWhenRead(reply, claim)
    // The claim accounts for the body until the agent has responded.
    request.body = undefined
    claim.reserve(body.byteLength)
    request.token = tokenInfoOf(caller, this.#options.gatewayUrl)
    const { id, method, params } = readCall(call, progress)
    const row = rpcMethods.get(method)
    if (row === undefined) throw new ParleyError('MethodNotFound')
    request.rpcMethod = method
    requireScope(caller, row.scope)
    if (request.token.isOperator) throw operatorTokenRefused()
    const incoming: Incoming = { request, reply, body, method, params, owner: caller.id, claim }
    if (row.destination === 'message') return this.#options.messages.route(incoming)
    if (row.destination === 'task') return this.#toTask(incoming)
    if (row.destination === 'context') return this.#clearContext(incoming)
    if (row.destination === 'gateway') throw new ParleyError('AuthenticatedExtendedCardNotConfigured')
    return this.#list(incoming, id, row.destination === 'tasks' ? 'tasks/list' : 'contexts/list')
  }

  async #toTask(incoming: Incoming): Promise<FastifyReply> {
    const { taskId } = parseParams(taskIn, incoming.params)
    const route = await this.#find('task', taskId, incoming)
    return this.#relay(incoming, route, this.#observerOf(incoming, route))
  }

  async #clearContext(incoming: Incoming): Promise<FastifyReply> {
    const { contextId } = parseParams(contextsClear, incoming.params)
    const { owner, claim } = incoming
    const route = await this.#find('context', contextId, incoming)
    return this.#relay(
      incoming,
      route,
      () =>
        new BufferedResponse(claim, (bytes) => {
          if (isSuccess(resultIn(bytes))) void this.#forget(owner, contextId)
        }),
    )
  }

  async #forget(owner: string, contextId: string): Promise<void> {
    try {
      const { lessons, store } = this.#options
      await Promise.all([store.removeContext(owner, contextId), lessons.forget(owner, contextId)])
    } catch (error) {
      this.#options.log.error(
        { err: error },
        'failed to remove the routes and training examples of a cleared context',
      )
    }
  }

  async #find(kind: 'task' | 'context', id: string, { request, owner }: Incoming): Promise<Route> {
    const caller = { owner, headers: request.headers, token: request.token, requestId: request.id }
    const found = await this.#options.taskLocator.find(kind, id, caller)
    if ('route' in found) return found.route
    // A "not found" would be wrong if a silent agent has it.
    if (found.silent.length > 0) throw mayBeAt(found.silent, kind)
    const headers =
      found.unknown.length === 0 ? {} : { 'x-parley-incomplete': incompleteHeader(found.unknown) }
    if (kind === 'task') throw new ParleyError('TaskNotFound', { data: { taskId: id }, headers })
    throw new ParleyError('ContextNotFound', { data: { contextId: id }, headers })
  }

  #relay(
    { request, reply, body }: Incoming,
    route: Route,
    watch: (() => ResponseObserver) | undefined,
  ): Promise<FastifyReply> {
    const { registry, dispatcherFor, reportSignal } = this.#options
    const entry = registry.find(route.agent)
    if (entry === undefined) throw agentHasLeft(route.kind === 'context' ? 'context' : 'task')
    const target = targetOf(entry, rpcPath(entry, request), dispatcherFor)
    return relay(request, reply, target, completeRequest(entry, { headers: request.headers, body }), {
      reportSignal,
      headers: { 'x-agent': entry.slug },
      watch: watch && (({ status }) => (status === 200 ? watch() : undefined)),
    })
  }

  /** Observes responses that carry a rating or the outcome of a task with pending training words. */
  #observerOf({ method, params, claim }: Incoming, route: Route): (() => ResponseObserver) | undefined {
    const { lessons } = this.#options
    if (method === 'tasks/feedback') {
      const { rating } = parseParams(feedbackIn, params)
      if (rating === undefined) return undefined
      return () =>
        new BufferedResponse(claim, (bytes) => {
          if (isSuccess(resultIn(bytes))) lessons.rated(route, rating)
        })
    }
    if (route.words === undefined) return undefined
    if (method === 'tasks/resubscribe') return () => new StreamOutcomeObserver(lessons, route)
    if (method !== 'tasks/get') return undefined
    return () => new BufferedResponse(claim, (bytes) => lessons.saw(route, resultIn(bytes)))
  }

  async #list(
    incoming: Incoming,
    id: RequestId,
    method: 'tasks/list' | 'contexts/list',
  ): Promise<FastifyReply> {
    const { reply } = incoming
    const { items, cursor, incomplete } = await this.#options.gather.list({ ...incoming, method })
    if (cursor !== undefined) void reply.header('x-next-cursor', cursor)
    if (incomplete.length > 0) void reply.header('x-parley-incomplete', incompleteHeader(incomplete))
    cutStalled(reply.raw)
    return reply
      .header('cache-control', 'no-store')
      .type('application/json; charset=utf-8')
      .send(resultEnvelope(id, JSON.stringify(items)))
  }
}

function isSuccess(result: unknown): boolean {
  return isObject(result) && result['success'] === true
}
