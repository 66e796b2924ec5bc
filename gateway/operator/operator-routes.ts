import type { Authenticator } from '@parley/kit/auth/authenticate'
import type { InnerCalls } from '@parley/kit/auth/inner-calls'
import { Cursors } from '@parley/kit/database/cursor'
import type { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import type { FastifyInstance } from 'fastify'
import type { GatewayConfig } from '../config.ts'
import type { OAuth } from '../oauth/start-oauth.ts'
import type { AgentChanges } from '../records/agent-history.ts'
import type { AuditEntries } from '../records/audit-entries.ts'
import type { Records } from '../records/start-records.ts'
import type { CallerAccess } from '../registry/caller-access.ts'
import type { Registry } from '../registry/registry.ts'
import type { NamedAgentOptions } from '../routing/forwarding/named-agent.ts'
import type { Routing } from '../routing/start-routing.ts'
import { AgentReader } from './agent-reader.ts'
import { addAuditRoutes } from './audit-routes.ts'
import { addDecisionRoutes } from './decision-routes.ts'
import { AgentDeliveries } from './deliveries/deliveries.ts'
import { addDeliveryRoutes } from './deliveries/delivery-routes.ts'
import { ChangedAgents } from './events/changed-agents.ts'
import { changedDeliveries } from './events/changed-deliveries.ts'
import { changedAudit, changedDecisions } from './events/changed-records.ts'
import { ChangedTasks, type ChangedTasksSources } from './events/changed-tasks.ts'
import { addEventRoutes } from './events/event-routes.ts'
import { LiveEvents } from './events/live-events.ts'
import { addLearnedRoutes } from './learned-routes.ts'
import { OperatorStatements } from './operator-statements.ts'
import { type NotRunningAgent, startAttention } from './overview/attention.ts'
import type { Calls } from './overview/overview.ts'
import { addOverviewRoutes } from './overview/overview-routes.ts'
import { ReadBudget } from './read-budget.ts'
import { TaskFinder } from './tasks/find-task.ts'
import { MergedCursors } from './tasks/merge-pages.ts'
import { RecordedTasks } from './tasks/recorded-tasks.ts'
import { TaskDetails } from './tasks/task-detail.ts'
import { TaskLists } from './tasks/task-list.ts'
import { addTaskRoutes } from './tasks/task-routes.ts'
import { TextLooks } from './text-looks.ts'
import { moneyAttention } from './usage/money-attention.ts'
import { AgentPayments } from './usage/payments.ts'
import { UsageReport } from './usage/usage-report.ts'
import { addUsageRoutes } from './usage/usage-routes.ts'

/** The parts of the gateway that the operator API uses. */
export interface OperatorParts {
  /** Reads the agents of this deployment. */
  reader: AgentReader
  looks: TextLooks
  config: GatewayConfig
  registry: Registry
  access: CallerAccess
  routing: Routing
  authenticator: Authenticator
  gatewayUrl: string
  answers: AnswerBudget
  inner: InnerCalls
  draining: () => boolean
  notRunning: () => NotRunningAgent[]
  log: Log
  records: Pick<Records, 'calls'>
  state: { audit: AuditEntries; history: AgentChanges }
}

/** The parts of which those of the operator API are made. */
export interface GivenParts extends Omit<OperatorParts, 'reader' | 'looks'> {
  oauth: Pick<OAuth, 'signingKeys'>
  named: Pick<NamedAgentOptions, 'dispatcherFor'>
}

/** Adds `/operator/…` (spec/operator.md#views). Each group of routes has one function. */
export function addOperatorRoutes(app: FastifyInstance, { oauth, named, ...given }: GivenParts): void {
  const { registry, gatewayUrl, log } = given
  const statements = new OperatorStatements({ signingKeys: oauth.signingKeys, gatewayUrl })
  const reader = new AgentReader({ registry, dispatcherFor: named.dispatcherFor, statements })
  const parts: OperatorParts = { ...given, reader, looks: new TextLooks(log) }
  addDecisionRoutes(app, parts)
  addAuditRoutes(app, parts)
  addLearnedRoutes(app, parts)
  addTasks(app, parts)
}

function addTasks(app: FastifyInstance, parts: OperatorParts): void {
  const { registry, reader, routing } = parts
  const { store } = routing
  const sources = { reader, registry, store, budget: new ReadBudget() }
  const finder = new TaskFinder(sources)
  const recorded = new RecordedTasks(sources)
  const cursors = new MergedCursors(new Cursors(routing.cursorKey))
  const onRow = finder.remember.bind(finder)
  const lists = new TaskLists({ ...sources, recorded, cursors, onRow })
  const details = new TaskDetails({ ...sources, finder, recorded })
  addTaskRoutes(app, { ...parts, lists, details })
  const deliveries = new AgentDeliveries({ ...sources, cursors })
  addDeliveryRoutes(app, { ...parts, deliveries })
  const payments = new AgentPayments({ ...sources, cursors })
  addUsageRoutes(app, { ...parts, payments, usage: new UsageReport({ ...sources, recorded }) })
  const attention = [startAttention(parts.notRunning), moneyAttention({ deliveries, payments })]
  const calls = () => parts.records.calls.callsInWindow()
  addEventRoutes(app, { ...parts, live: liveEvents({ ...parts, sources, calls }) })
  addOverviewRoutes(app, { ...parts, lists, sources: { ...sources, calls, attention } })
}

function liveEvents({
  registry,
  routing,
  state,
  log,
  sources,
  calls,
}: Pick<OperatorParts, 'registry' | 'routing' | 'state' | 'log'> & {
  sources: ChangedTasksSources
  calls: () => Calls
}): LiveEvents {
  return new LiveEvents({
    registry,
    tasks: new ChangedTasks(sources),
    agents: new ChangedAgents(registry),
    sources: [changedDecisions(routing.store), changedAudit(state.audit), changedDeliveries(sources)],
    calls,
    log,
  })
}
