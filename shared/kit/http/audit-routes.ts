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

/** Why nothing is handed on to an agent: a decision of the operators, not a failure. */
const decisions = new Set<unknown>(['not_admitted', 'quarantined'])

/** Told to the audit log and nowhere else: with a stack for each, anybody could fill the log. */
export function isDecision({ data }: ParleyError): boolean {
  return decisions.has(data['reason'])
}

/** Who may not, whatever the route. Too many requests are told where they are counted, once. */
export function isRefusal(error: ErrorName): boolean {
  return refusals.has(error)
}

/** Tells the audit log what routes with `config.audit` have done. The others cost nothing. */
export function auditRoutes(app: FastifyInstance, audit: Audit): void {
  app.addHook('onRoute', (route) => {
    if (route.config?.audit === undefined) return
    route.onResponse = [
      ...[route.onResponse ?? []].flat(),
      (request, reply, done) => {
        if (reply.statusCode < 400) audit.decided({ ...wishOf(request), allowed: true })
        done()
      },
    ]
  })
}

/** Tells the audit log of an error that a route has thrown, where it is a refusal. */
export function auditError(audit: Audit, request: FastifyRequest, error: ParleyError): void {
  const changes = request.routeOptions.config.audit !== undefined
  const refused = changes ? error.status < 500 && error.error !== 'TooManyRequests' : isRefusal(error.error)
  if (refused || isDecision(error))
    audit.decided({ ...wishOf(request), allowed: false, reason: reasonOf(error) })
}

function wishOf(request: FastifyRequest): Omit<Decision, 'allowed'> {
  const { config, url } = request.routeOptions
  const params = (request.params ?? {}) as Record<string, string>
  return {
    who: request.callerId,
    address: request.ip,
    action: config.audit ?? `${request.method} ${url ?? 'none'}`,
    target: request.auditTarget ?? (Object.values(params).join('/') || undefined),
    requestId: request.id,
  }
}

/** Which refusal, and the reason that the caller is told too. */
export function reasonOf({ error, data }: ParleyError): string {
  const { reason } = data
  return typeof reason === 'string' ? `${error}: ${reason}` : error
}
