import type { ErrorName, ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Audit, Decision } from '../process/audit.ts'

const refusals = new Set<ErrorName>([
  'AuthenticationRequired',
  'InvalidToken',
  'TokenExpired',
  'InvalidTokenSignature',
  'InsufficientPermissions',
])

/** Reasons for rejecting a request that are decisions of an operator, not failures. */
const decisions = new Set<unknown>(['not_admitted', 'quarantined'])

/** Whether the error goes only to the audit log, because a stack for each would let any client fill the log. */
export function isDecision({ data }: ParleyError): boolean {
  return decisions.has(data['reason'])
}

/** Whether the error denies access. `TooManyRequests` is not included: the rate limiter logs it once per window. */
export function isRefusal(error: ErrorName): boolean {
  return refusals.has(error)
}

/** Logs successful requests of routes that set `config.audit`. Other routes get no hook. */
export function auditRoutes(app: FastifyInstance, audit: Audit): void {
  app.addHook('onRoute', (route) => {
    if (route.config?.audit === undefined) return
    route.onResponse = [
      ...[route.onResponse ?? []].flat(),
      (request, reply, done) => {
        if (reply.statusCode < 400) audit.record({ ...attemptedAction(request), allowed: true })
        done()
      },
    ]
  })
}

/** Logs an error thrown by a route if it is a refusal. */
export function auditError(audit: Audit, request: FastifyRequest, error: ParleyError): void {
  const changes = request.routeOptions.config.audit !== undefined
  const refused = changes ? error.status < 500 && error.error !== 'TooManyRequests' : isRefusal(error.error)
  if (refused || isDecision(error))
    audit.record({ ...attemptedAction(request), allowed: false, reason: reasonOf(error) })
}

function attemptedAction(request: FastifyRequest): Omit<Decision, 'allowed'> {
  const { config, url } = request.routeOptions
  const { params } = request
  return {
    who: request.callerId,
    address: request.ip,
    action: config.audit ?? request.rpcMethod ?? `${request.method} ${url ?? 'none'}`,
    target: request.auditTarget ?? (Object.values(params ?? {}).join('/') || undefined),
    requestId: request.id,
  }
}

/** Returns the name of the error, followed by the `reason` in its data. */
export function reasonOf({ error, data }: ParleyError): string {
  const { reason } = data
  return typeof reason === 'string' ? `${error}: ${reason}` : error
}
