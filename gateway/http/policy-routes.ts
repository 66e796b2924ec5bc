import { hash } from 'node:crypto'
import { requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { parseParams } from '@parley/wire/codecs/parley/params'
import {
  policyAnswer,
  policyCheckAnswer,
  policyCheckIn,
  policyCheckOut,
  policyIn,
  policyOf,
  policyOut,
} from '@parley/wire/codecs/parley/policy'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { timestamp } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { AgentPolicies } from '../registry/agent-policies.ts'
import type { AgentEntry } from '../registry/entry.ts'
import type { PolicyCaller } from '../registry/policy.ts'
import { agentNotFoundError, type RegistryRoutes } from './registry-routes.ts'

type PolicyRoutes = Pick<RegistryRoutes, 'registry' | 'authenticator' | 'access'>

type Request = FastifyRequest<{ Params: { id: string } }>

const ofPolicy = {
  tag: 'registry',
  access: 'agent:admin',
  responses: {
    200: { description: 'The policy', json: policyAnswer, headers: { etag: 'The version of the policy' } },
  },
} satisfies Partial<OperationDescription>

const changes = {
  headers: z.object({ 'if-match': z.string().optional().describe('The version to change') }),
  errors: [['Conflict', 412]],
} satisfies Partial<OperationDescription>

const readApi: OperationDescription = { ...ofPolicy, summary: 'Read the policy of an agent' }
const setApi: OperationDescription = {
  ...ofPolicy,
  ...changes,
  summary: 'Replace the policy of an agent',
  body: { json: policyIn },
}
const removeApi: OperationDescription = { ...ofPolicy, ...changes, summary: 'Remove the policy of an agent' }
const checkApi: OperationDescription = {
  ...ofPolicy,
  summary: 'Test what a policy decides for a caller',
  query: policyCheckIn,
  responses: { 200: { description: 'The decision', json: policyCheckAnswer } },
}

/**
 * Adds `GET`, `PUT` and `DELETE /registry/agents/{id}/policy` for operators (spec/policy.md#routes). The last two are
 * written to the audit log, and refused with 412 if `If-Match` names another version.
 */
export function addPolicyRoutes(app: FastifyInstance, routes: PolicyRoutes): void {
  const { registry, authenticator, access } = routes
  const operate = async (request: Request) => {
    const caller = await authenticator.authenticate(request, bodyOf(request))
    request.callerId = caller.id
    requireNoDelegate(caller)
    requireScope(caller, 'agent:admin')
    const entry = registry.findIncludingLeft(request.params.id)
    if (entry === undefined) throw agentNotFoundError()
    return { entry, by: caller.id }
  }
  const set = (request: Request, entry: AgentEntry, policy: AgentEntry['policy']) =>
    registry.setPolicy(entry.id, policy, (now) => requireMatch(request, now))
  const options = (api: OperationDescription) => ({ config: { audit: 'registry.policy', api } })
  app.get<{ Params: { id: string } }>(
    '/registry/agents/:id/policy',
    { config: { api: readApi } },
    async (request, reply) => answer(reply, (await operate(request)).entry),
  )
  app.get<{ Params: { id: string } }>(
    '/registry/agents/:id/policy/check',
    { config: { api: checkApi } },
    async (request, reply) => {
      const { entry } = await operate(request)
      const { caller, delegate, skill } = parseParams(policyCheckIn, request.query)
      const tested: PolicyCaller = await access.callerNamed(caller)
      if (delegate !== undefined) tested.delegate = await access.callerNamed(delegate)
      void reply.header('cache-control', 'no-store')
      return checkOut(registry.policies, entry, tested, skill)
    },
  )
  app.put<{ Params: { id: string } }>(
    '/registry/agents/:id/policy',
    options(setApi),
    async (request, reply) => {
      const { entry, by } = await operate(request)
      requireJson(request)
      const rules = policyOf(parseParams(policyIn, parseJson(bodyOf(request))))
      request.auditTarget = `${entry.slug} with ${rules.rules.length} rules, default ${rules.default}`
      return answer(reply, await set(request, entry, { ...rules, changedAt: timestamp(), changedBy: by }))
    },
  )
  app.delete<{ Params: { id: string } }>(
    '/registry/agents/:id/policy',
    options(removeApi),
    async (request, reply) => {
      const { entry } = await operate(request)
      request.auditTarget = `${entry.slug} without a policy`
      return answer(reply, await set(request, entry, undefined))
    },
  )
}

/** What the policy decides for the caller, and the skills of the agent to which that caller is limited. */
function checkOut(
  policies: AgentPolicies,
  entry: AgentEntry,
  caller: PolicyCaller,
  skill: string | undefined,
) {
  const policy = policies.of(entry)
  if (policy === undefined) return policyCheckOut(entry.slug, { allowed: true, rule: 'no policy' }, undefined)
  const whole = policy.decideAccess(caller, entry.skills)
  const ofSkill = skill === undefined ? whole : policy.decide(caller, skill)
  const decision = ofSkill.allowed && !whole.allowed ? whole : ofSkill
  const allowed = policy.access(caller, entry.skills)
  return policyCheckOut(entry.slug, decision, allowed.kind === 'some' ? [...allowed.skills] : undefined)
}

function answer(reply: FastifyReply, entry: AgentEntry) {
  void reply.headers({ etag: etagOf(entry), 'cache-control': 'no-store' })
  return policyOut(entry.slug, entry.policy)
}

/** Identifies a version of the policy, or its absence. */
function etagOf({ policy }: AgentEntry): string {
  return `"${hash('sha256', JSON.stringify(policy ?? null), 'base64url').slice(0, 22)}"`
}

function requireMatch({ headers }: Request, entry: AgentEntry): void {
  const expected = headers['if-match']?.split(',').map((value) => value.trim())
  if (expected === undefined || expected.includes('*') || expected.includes(etagOf(entry))) return
  throw new ParleyError('Conflict', {
    message: 'The policy has changed since you read it: read it again, then repeat the change',
    data: { reason: 'changed' },
    status: 412,
  })
}
