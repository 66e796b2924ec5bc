import { auditError, isDecision } from '@parley/kit/http/audit-routes'
import { requireJson } from '@parley/kit/http/require-json'
import type { CallProgress } from '@parley/kit/http/rpc-call'
import { requestLog } from '@parley/kit/http/server'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { logFailure } from '@parley/kit/process/log-failure'
import { ParleyError } from '@parley/wire/errors'
import { errorEnvelope } from '@parley/wire/jsonrpc/envelope'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { rpcMethods } from '../routing/rpc/rpc-methods.ts'
import type { RpcRouter } from '../routing/rpc/rpc-router.ts'

/** `POST /` and every method name as a path (spec/gateway-routing.md#json-rpc-without-an-agent). */
export function addRpcRoutes(app: FastifyInstance, { router, log }: { router: RpcRouter; log: Log }): void {
  const audit = new Audit(log)
  const answer = async (request: FastifyRequest, reply: FastifyReply, pathMethod: string | undefined) => {
    const progress: CallProgress = { id: null }
    try {
      requireJson(request)
      return await router.answer(request, reply, pathMethod, progress)
    } catch (thrown) {
      // The client has disconnected.
      if (reply.raw.destroyed) return reply.hijack()
      const error = ParleyError.from(thrown)
      if (error.status >= 500 && !isDecision(error))
        logFailure(requestLog(log, request), error, { method: request.rpcMethod })
      auditError(audit, request, error)
      return reply
        .code(error.status)
        .header('cache-control', 'no-store')
        .headers(error.headers)
        .type('application/json; charset=utf-8')
        .send(errorEnvelope(progress.id, error))
    }
  }
  app.post('/', (request, reply) => answer(request, reply, undefined))
  for (const name of rpcMethods.keys()) app.post(`/${name}`, (request, reply) => answer(request, reply, name))
}
