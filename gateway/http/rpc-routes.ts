import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { auditError, isDecision } from '../../shared/http/audit-routes.ts'
import { requireJson } from '../../shared/http/require-json.ts'
import { requestLog } from '../../shared/http/server.ts'
import { errorEnvelope } from '../../shared/jsonrpc/envelope.ts'
import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import { Audit } from '../../shared/process/audit.ts'
import type { Log } from '../../shared/process/log.ts'
import { logFailure } from '../../shared/process/log-failure.ts'
import { rpcMethods } from '../routing/rpc-methods.ts'
import type { Known, RpcRouter } from '../routing/rpc-router.ts'

/** `POST /` and every method name as a path: JSON-RPC without naming an agent (interfaces, "Gateway"). */
export function addRpcRoutes(app: FastifyInstance, { router, log }: { router: RpcRouter; log: Log }): void {
  const audit = new Audit(log)
  const answer = async (request: FastifyRequest, reply: FastifyReply, pathMethod: string | undefined) => {
    const known: Known = { id: null }
    try {
      requireJson(request)
      return await router.answer(request, reply, pathMethod, known)
    } catch (thrown) {
      // Nobody is there to read an answer.
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
        .send(errorEnvelope(known.id, error))
    }
  }
  app.post('/', (request, reply) => answer(request, reply, undefined))
  for (const name of rpcMethods.keys()) app.post(`/${name}`, (request, reply) => answer(request, reply, name))
}
