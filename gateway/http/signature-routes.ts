import { type Authenticator, requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import { bodyOf } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { WindowBudget } from '@parley/kit/http/window-budget'
import { successAnswer } from '@parley/wire/codecs/answers/registry'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Registry } from '../registry/registry.ts'
import type { Claims } from '../store/claims.ts'
import { agentNotFoundError } from './registry-routes.ts'

export interface SignatureRoutes {
  registry: Registry
  authenticator: Authenticator
  signatures: Claims
  /** Called with the credentials of an agent of this deployment, to exempt its introspection from the rate limit. */
  checks: (credentials: string) => void
  /** Maximum number of claims per agent in `windowMs`, counted in this process. Defaults to 60,000. */
  claimsMax?: number
}

/** Longer than twice the timestamp tolerance. A request replayed later is refused because of its timestamp. */
const windowMs = 601_000
const agentsMax = 10_000
/** A SHA-256 hash in base64url. */
const hashForm = /^[\w-]{42}[AEIMQUYcgkosw048]$/

const claim: OperationDescription = {
  summary: 'Claim a signed request for one agent of the deployment',
  tag: 'registry',
  access: 'agent:write',
  params: z.object({ id: z.string(), hash: z.string().regex(hashForm) }),
  responses: { 200: { description: 'Claimed', json: successAnswer } },
  errors: ['Conflict'],
}

type Params = { id: string; hash: string }

/**
 * Adds `PUT /registry/agents/{id}/signatures/{hash}`, which claims a signed request for one agent of the deployment or
 * returns 409 if another agent has claimed it. The same agent may claim it again, because it detects its own replays.
 */
export function addSignatureRoutes(app: FastifyInstance, routes: SignatureRoutes): void {
  const { registry, authenticator, signatures, checks, claimsMax = 60_000 } = routes
  const budget = new WindowBudget({ windowMs, keysMax: agentsMax })
  const options = { config: { api: claim } }
  app.put<{ Params: Params }>('/registry/agents/:id/signatures/:hash', options, async (request) => {
    const caller = await authenticator.authenticate(request, bodyOf(request))
    request.callerId = caller.id
    requireNoDelegate(caller)
    requireScope(caller, 'agent:write')
    const { id, hash } = request.params
    const entry = await registry.findOrSync(id)
    if (entry === undefined || entry.owner !== caller.id) throw agentNotFoundError()
    if (!entry.admitted) throw notAdmitted()
    if (!hashForm.test(hash)) {
      const issues = [{ path: 'hash', message: 'must be a SHA-256 in base64url' }]
      throw new ParleyError('InvalidParams', { data: { issues } })
    }
    checks(request.headers.authorization ?? '')
    const waitMs = budget.spend(entry.id, 1, claimsMax)
    if (waitMs !== undefined) throw tooMany(waitMs)
    if (!(await signatures.hold(hash, entry.id, windowMs))) throw isTaken()
    return { success: true }
  })
}

const notAdmitted = () =>
  new ParleyError('InsufficientPermissions', {
    message: 'Only admitted agents may claim signed requests: ask the operator of the gateway',
    data: { reason: 'not_admitted' },
  })

const isTaken = () =>
  new ParleyError('Conflict', {
    message: 'Another agent has already accepted this signed request',
    data: { reason: 'replayed' },
  })

const tooMany = (leftMs: number) =>
  new ParleyError('TooManyRequests', {
    data: { reason: 'signatures' },
    headers: { 'retry-after': String(Math.max(1, Math.ceil(leftMs / 1000))) },
  })
