import { type Authenticator, requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import type { Caller, Scope } from '@parley/kit/auth/caller'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyRequest } from 'fastify'

/**
 * Returns the authenticated caller of a REST route. If signatures are required, a write accepts each signature once.
 * @throws ParleyError as `Authenticator.authenticate`; InsufficientPermissions
 */
export async function callerOf(
  authenticator: Authenticator,
  request: FastifyRequest,
  needed: Scope | ((caller: Caller) => Scope),
): Promise<Caller> {
  const caller = await authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  requireNoDelegate(caller)
  const scope = typeof needed === 'function' ? needed(caller) : needed
  requireScope(caller, scope)
  if (scope === 'agent:write') await authenticator.takeOnce(caller)
  return caller
}

/** Parses an optional JSON body; returns `{}` if there is none. */
export function jsonBody(request: FastifyRequest): unknown {
  const bytes = bodyOf(request)
  if (bytes.byteLength === 0) return {}
  requireJson(request)
  return parseJson(bytes)
}
