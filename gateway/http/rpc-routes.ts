import { auditError, isDecision } from '@parley/kit/http/audit-routes'
import { requireJson } from '@parley/kit/http/request-body'
import { requestLog } from '@parley/kit/http/server'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { logFailure } from '@parley/kit/process/log-failure'
import type { RpcPath } from '@parley/wire/codecs/codec'
import { dialectOf, rpcPaths } from '@parley/wire/codecs/dialects'
import { writeErrorAnswer } from '@parley/wire/codecs/error-answer'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RoutedCall, RpcRouter } from '../routing/rpc/rpc-router.ts'

/** Adds `POST /` and a route for every method name (spec/gateway-routing.md#json-rpc-without-an-agent). */
export function addRpcRoutes(app: FastifyInstance, { router, log }: { router: RpcRouter; log: Log }): void {
  const audit = new Audit(log)
  const answer = async (request: FastifyRequest, reply: FastifyReply, at: RpcPath) => {
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
      const codec = progress.codec ?? dialectOf({ path: at.path, headers: request.headers })
      const { status, type, body } = writeErrorAnswer(codec, error, progress)
      return reply
        .code(status)
        .header('cache-control', 'no-store')
        .headers(error.headers)
        .type(type)
        .send(body)
    }
  }
  for (const at of rpcPaths()) app.post(at.path, (request, reply) => answer(request, reply, at))
}
