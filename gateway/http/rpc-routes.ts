import { auditError, isDecision } from '@parley/kit/http/audit-routes'
import { requireJson } from '@parley/kit/http/request-body'
import type { RestCall } from '@parley/kit/http/rest-call'
import { describedCall, describedRest } from '@parley/kit/http/route-description'
import { requestLog } from '@parley/kit/http/server'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { logFailure } from '@parley/kit/process/log-failure'
import type { Codec } from '@parley/wire/codecs/codec'
import { dialectOf, dialects, partsOf, rpcPaths } from '@parley/wire/codecs/dialects'
import { writeErrorAnswer, writeRestErrorAnswer } from '@parley/wire/codecs/error-answer'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { CallAddress } from '../routing/forwarding/call-reader.ts'
import type { RoutedCall, RpcRouter } from '../routing/rpc/rpc-router.ts'

/**
 * Adds the paths that accept JSON-RPC, such as `POST /`, and the REST paths of dialects
 * (spec/gateway-routing.md#calls-without-an-agent).
 */
export function addRpcRoutes(app: FastifyInstance, { router, log }: { router: RpcRouter; log: Log }): void {
  const audit = new Audit(log)
  const answer = async (request: FastifyRequest, reply: FastifyReply, at: CallAddress) => {
    const progress: RoutedCall = { id: null }
    try {
      requireJson(request)
      return await router.answer(request, reply, at, progress)
    } catch (thrown) {
      // The client has disconnected.
      if (reply.raw.destroyed) return reply.hijack()
      const error = ParleyError.from(thrown)
      if (error.status >= 500 && !isDecision(error))
        logFailure(requestLog(log, request), error, { method: request.rpcMethod })
      auditError(audit, request, error)
      const { query } = partsOf(request.url)
      const { namedMethod } = progress
      const named = namedMethod === undefined ? {} : { method: namedMethod }
      const codec = progress.codec ?? dialectOf({ path: at.path, query, headers: request.headers, ...named })
      const { status, type, body } =
        at.rest === undefined
          ? writeErrorAnswer(codec, error, progress)
          : writeRestErrorAnswer(at.rest.binding, error)
      return reply
        .code(status)
        .header('cache-control', 'no-store')
        .headers({ ...progress.headers, ...error.headers })
        .type(type)
        .send(body)
    }
  }
  for (const at of rpcPaths()) {
    const config = { api: describedCall(at) }
    app.post(at.path, { config }, (request, reply) => answer(request, reply, at))
  }
  for (const codec of dialects) addRestRoutes(app, codec, answer)
}

type AnswerCall = (request: FastifyRequest, reply: FastifyReply, at: CallAddress) => Promise<FastifyReply>

function addRestRoutes(app: FastifyInstance, codec: Codec, answer: AnswerCall): void {
  const binding = codec.rest
  for (const route of binding?.routes ?? [])
    app.route<{ Params: Record<string, string>; Querystring: Record<string, unknown> }>({
      method: route.verb,
      url: route.path,
      exposeHeadRoute: false,
      config: { ...(binding && { rest: binding }), api: describedRest(codec, route) },
      handler: (request, reply) => {
        const { params, query } = request
        const rest: RestCall | undefined = binding && { codec, binding, route, path: params, query }
        return answer(request as FastifyRequest, reply, { path: route.path, ...(rest && { rest }) })
      },
    })
}
