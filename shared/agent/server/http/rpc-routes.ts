import { Readable } from 'node:stream'
import { isRefusal, reasonOf } from '@parley/kit/http/audit-routes'
import { releaseWhenRead } from '@parley/kit/http/release-when-read'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { RestCall } from '@parley/kit/http/rest-call'
import { describedCall, describedRest } from '@parley/kit/http/route-description'
import { requestLog } from '@parley/kit/http/server'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import type { Codec } from '@parley/wire/codecs/codec'
import { dialects, rpcPaths } from '@parley/wire/codecs/dialects'
import { jsonType } from '@parley/wire/codecs/error-answer'
import { chunksOf } from '@parley/wire/codecs/lazy-part'
import { operations } from '@parley/wire/model/operation'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher, Reply } from '../methods/dispatch.ts'
import { baseUrlFor } from './base-url-for.ts'
import { sendEventStream } from './sse.ts'

interface At {
  path: string
  pathMethod?: string | undefined
  rest?: RestCall
}

/**
 * Adds the paths that accept JSON-RPC, such as `POST /` (spec/json-rpc.md#paths), and the REST paths of dialects
 * (spec/a2a.md#10-rest).
 */
export function addRpcRoutes(
  app: FastifyInstance,
  parts: { dispatcher: Dispatcher; log: Log; stopping: AbortSignal },
): void {
  const audit = new Audit(parts.log)
  const answer = async (request: FastifyRequest, reply: FastifyReply, { path, pathMethod, rest }: At) => {
    requireJson(request)
    const answered = await parts.dispatcher.dispatch({
      bytes: bodyOf(request),
      headers: request.headers,
      method: request.method,
      url: request.url,
      path,
      pathMethod,
      ...(rest !== undefined && { rest }),
      reachedAt: (baseUrl) => baseUrlFor(request, baseUrl),
      signal: () => signalOf(reply),
      log: () => requestLog(parts.log, request),
    })
    // Releases the body, which may be large, while the answer waits for its reader.
    request.body = undefined
    if (answered.method !== undefined) request.rpcMethod = answered.method
    record(audit, request, answered)
    return send(reply, answered, parts.stopping)
  }
  for (const { path, method } of rpcPaths()) {
    const config = { api: describedCall({ path, ...(method && { method }) }) }
    app.post(path, { config }, (request, reply) => answer(request, reply, { path, pathMethod: method }))
  }
  for (const codec of dialects) addRestRoutes(app, codec, answer)
}

type AnswerCall = (request: FastifyRequest, reply: FastifyReply, at: At) => Promise<FastifyReply>

function addRestRoutes(app: FastifyInstance, codec: Codec, answer: AnswerCall): void {
  const binding = codec.rest
  if (binding === undefined) return
  for (const route of binding.routes)
    app.route<{ Params: Record<string, string>; Querystring: Record<string, unknown> }>({
      method: route.verb,
      url: route.path,
      exposeHeadRoute: false,
      config: { rest: binding, api: describedRest(codec, route) },
      handler: (request, reply) => {
        const { params, query, routeOptions } = request
        const rest = { codec, binding, route, path: params, query }
        return answer(request as FastifyRequest, reply, { path: routeOptions.url ?? '', rest })
      },
    })
}

/** Writes refusals and, if enabled, accepted writes to the audit log. */
function record(audit: Audit, request: FastifyRequest, { method, operation, caller, error }: Reply): void {
  if (error !== undefined && !isRefusal(error.error)) return
  if (
    error === undefined &&
    (!audit.logsWork || operation === undefined || operations[operation].scope !== 'agent:write')
  )
    return
  const event = { who: caller, address: request.ip, action: method ?? 'JSON-RPC', requestId: request.id }
  if (error === undefined) audit.logWork({ ...event, allowed: true })
  else audit.record({ ...event, allowed: false, reason: reasonOf(error) })
}

function send(reply: FastifyReply, answered: Reply, stopping: AbortSignal): FastifyReply {
  reply.code(answered.status).header('cache-control', 'no-store').headers(answered.headers)
  const { claim } = answered
  try {
    if ('items' in answered)
      return sendEventStream(reply, answered.items, { stopping, claim, writer: answered.writer })
    reply.type(answered.type ?? jsonType)
    if ('body' in answered) return reply.send(answered.body)
    return reply.send(Readable.from(chunksOf(answered.json), { objectMode: false }))
  } finally {
    if (claim !== undefined) releaseWhenRead(reply, claim)
  }
}

function signalOf(reply: FastifyReply): AbortSignal {
  const abort = new AbortController()
  // The caller may have disconnected before this call.
  if (reply.raw.destroyed) abort.abort()
  else
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) abort.abort()
    })
  return abort.signal
}
