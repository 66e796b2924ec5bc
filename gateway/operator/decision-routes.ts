import { requireScope } from '@parley/kit/auth/authenticate'
import { mayUse } from '@parley/kit/auth/caller'
import { Cursors } from '@parley/kit/database/cursor'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  decisionDetail,
  decisionList,
  decisionListQuery,
  verdictAnswer,
  verdictIn,
} from '@parley/wire/codecs/answers/operator/records'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { AgentEntry } from '../registry/entry.ts'
import type { JudgedAgents } from '../routing/learning/corrections.ts'
import { decisionsKeptMs } from '../routing/negotiation/decisions.ts'
import type { DecisionRecord, Verdict } from '../routing/store/routing-store.ts'
import { listDecisions } from './decision-list.ts'
import { decisionDetailOut, summaryIn } from './decision-view.ts'
import type { OperatorParts } from './operator-routes.ts'
import { authenticateView, type CallerView, showsTexts, viewOf } from './view.ts'

const listApi: OperationDescription = {
  summary: 'List decisions, newest first',
  tag: 'operator',
  access: 'agent:read',
  query: decisionListQuery,
  responses: { 200: { description: 'A page of decisions', json: decisionList } },
}
const readApi: OperationDescription = {
  summary: 'Read why an agent was chosen, with the verdicts of people',
  tag: 'operator',
  access: 'agent:read',
  responses: { 200: { description: 'The decision', json: decisionDetail } },
}
const feedbackApi: OperationDescription = {
  summary: 'Record whether the right agent was chosen, and learn from it',
  tag: 'operator',
  access: 'agent:write',
  body: { json: verdictIn },
  responses: { 200: { description: 'The decision with all verdicts', json: verdictAnswer } },
}

type Parts = Pick<OperatorParts, 'authenticator' | 'config' | 'routing' | 'looks' | 'registry' | 'access'>
type Request = FastifyRequest<{ Params: { id: string } }>

/** Adds `/operator/decisions` (spec/operator.md#decisions). */
export function addDecisionRoutes(app: FastifyInstance, parts: Parts): void {
  const { authenticator, config, routing, looks } = parts
  const options = { store: routing.store, cursors: new Cursors(routing.cursorKey) }
  const detail = (request: FastifyRequest, view: CallerView, decision: DecisionRecord) => {
    const answer = decisionDetailOut(decision, showsTexts(view, decision.owner ?? null))
    if (answer.text !== null && decision.owner !== view.caller) looks.record(request, decision.id)
    return answer
  }
  app.get('/operator/decisions', { config: { api: listApi } }, async (request, reply) => {
    const view = await authenticateView(parts, request)
    const page = await listDecisions(options, view, parseParams(decisionListQuery, request.query))
    if (page.decisions.some(({ text, owner }) => text !== null && owner !== view.caller))
      looks.recordList(request, 'decisions')
    void reply.header('cache-control', 'no-store')
    return page
  })
  app.get('/operator/decisions/:id', { config: { api: readApi } }, async (request: Request, reply) => {
    const view = await authenticateView(parts, request)
    void reply.header('cache-control', 'no-store')
    return detail(request, view, await visible(parts, view, request.params.id))
  })
  app.post(
    '/operator/decisions/:id/feedback',
    { config: { api: feedbackApi, audit: 'operator.decision_feedback' } },
    async (request: Request, reply) => {
      const caller = await authenticator.authenticate(request, bodyOf(request))
      request.callerId = caller.id
      const view = { ...viewOf(caller, config), caller: caller.id, credentials: caller.credentials }
      if (view.owner !== undefined && !mayUse(caller, 'agent:write')) requireScope(caller, 'agent:write')
      requireJson(request)
      const given = parseParams(verdictIn, parseJson(bodyOf(request)))
      const decision = await visible(parts, view, request.params.id)
      const { id } = decision
      request.auditTarget = `${id} ${given.verdict}`
      const judged = judgedAgents(decision, given, {
        all: parts.registry,
        visible: await parts.access.agentsFor(caller),
      })
      const verdict: Verdict = {
        verdict: given.verdict,
        ...(given.right_agent !== undefined && { rightAgent: given.right_agent.toWellFormed() }),
        ...(given.comment !== undefined && { comment: given.comment.toWellFormed() }),
        by: caller.id,
        at: Date.now(),
      }
      const recorded = await routing.corrections.record(id, verdict, judged)
      if (recorded === undefined) throw decisionNotFound()
      void reply.header('cache-control', 'no-store')
      const { notLearned = null } = recorded
      const answer = detail(request, view, await visible(parts, view, id))
      return { ...answer, learned: notLearned === null, not_learned: notLearned }
    },
  )
}

/** @throws ParleyError NotFound, also for a decision of another owner that the caller may not see */
async function visible({ routing }: Parts, view: CallerView, id: string): Promise<DecisionRecord> {
  const record = /^[\da-f]{32}$/.test(id) ? await routing.negotiator.findRecord(id) : undefined
  const isVisible = view.owner === undefined || record?.owner === view.owner
  if (record === undefined || !isVisible || record.at + decisionsKeptMs <= Date.now())
    throw decisionNotFound()
  return record
}

interface KnownAgents {
  all: { findIncludingLeft(slug: string): Pick<AgentEntry, 'id' | 'registeredAt'> | undefined }
  /** The agents that the person may see. */
  visible: { bySlug(slug: string): Pick<AgentEntry, 'id'> | undefined }
}

/**
 * The agents that the verdict is about. The right agent must be one that the person may see.
 * @throws ParleyError InvalidParams
 */
export function judgedAgents(
  decision: DecisionRecord,
  { verdict, right_agent: slug }: z.output<typeof verdictIn>,
  { all, visible: agents }: KnownAgents,
): JudgedAgents {
  const chosen = summaryIn(decision).chosen
  const right = slug === undefined ? undefined : agents.bySlug(slug)
  if (slug !== undefined && verdict === 'right')
    throw wrongAgent('belongs to the verdict wrong: leave it out, or send that verdict')
  if (slug !== undefined && slug === chosen)
    throw wrongAgent('is the agent that was chosen: name another agent, or send the verdict right')
  if (slug !== undefined && right === undefined)
    throw wrongAgent('no agent with this name is registered: GET /registry/agents lists the names')
  const entry = chosen === undefined ? undefined : all.findIncludingLeft(chosen)
  // An agent that was registered later has only the name of the chosen one.
  const isSame = entry !== undefined && entry.registeredAt <= timestampOf(decision.at * 1000 + 999)
  return { chosen: isSame ? entry.id : undefined, right: right?.id }
}

const wrongAgent = (message: string) =>
  new ParleyError('InvalidParams', { data: { issues: [{ path: 'right_agent', message }] } })

const decisionNotFound = () =>
  new ParleyError('NotFound', { message: 'Negotiation not found', data: { reason: 'negotiation' } })
