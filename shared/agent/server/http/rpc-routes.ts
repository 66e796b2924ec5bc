import { Readable } from 'node:stream'
import { isRefusal, reasonOf } from '@parley/kit/http/audit-routes'
import { releaseWhenRead } from '@parley/kit/http/release-when-read'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import { requestLog } from '@parley/kit/http/server'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import type { RpcPath } from '@parley/wire/codecs/codec'
import { rpcPaths } from '@parley/wire/codecs/dialects'
import { chunksOf } from '@parley/wire/codecs/lazy-part'
import { operations } from '@parley/wire/model/operation'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher, Reply } from '../methods/dispatch.ts'
import { baseUrlFor } from './base-url-for.ts'
import { sendEventStream } from './sse.ts'

/** Adds `POST /` and a path for every method name, which accept the same body (spec/json-rpc.md#paths). */
export function addRpcRoutes(
  app: FastifyInstance,
  parts: { dispatcher: Dispatcher; log: Log; stopping: AbortSignal },
): void {
  const audit = new Audit(parts.log)
  const answer = async (request: FastifyRequest, reply: FastifyReply, { path, method }: RpcPath) => {
    requireJson(request)
    const answered = await parts.dispatcher.dispatch({
      bytes: bodyOf(request),
      headers: request.headers,
      method: request.method,
      url: request.url,
      path,
      pathMethod: method,
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
  for (const at of rpcPaths()) app.post(at.path, (request, reply) => answer(request, reply, at))
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
    reply.type('application/json; charset=utf-8')
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
  else reply.raw.once('close', () => abort.abort())
  return abort.signal
}
