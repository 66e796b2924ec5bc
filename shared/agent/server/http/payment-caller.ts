import { type Authenticator, requireScope } from '@parley/kit/auth/authenticate'
import type { Caller, Scope } from '@parley/kit/auth/caller'
import { requireJson } from '@parley/kit/http/require-json'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyRequest } from 'fastify'

/** Who calls a REST route, with the right to it. A signed write counts once where signatures are required. */
export async function callerOf(
  authenticator: Authenticator,
  request: FastifyRequest,
  needed: Scope | ((caller: Caller) => Scope),
): Promise<Caller> {
  const body = request.body as Uint8Array | undefined
  const caller = await authenticator.authenticate(request.headers, body)
  request.callerId = caller.id
  const scope = typeof needed === 'function' ? needed(caller) : needed
  requireScope(caller, scope)
  if (scope === 'agent:write') await authenticator.takeOnce(caller)
  return caller
}

/** The JSON of a body that may be left out. */
export function jsonBody(request: FastifyRequest): unknown {
  const bytes = request.body as Buffer | undefined
  if (bytes === undefined || bytes.byteLength === 0) return {}
  requireJson(request)
  return parseJson(bytes)
}
