import type { Authenticator } from '@parley/kit/auth/authenticate'
import { Cursors } from '@parley/kit/database/cursor'
import type { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { currentTraceId } from '@parley/kit/telemetry/tracing'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import type { TextEmbedder } from '@parley/negotiation/index/request-meaning'
import type { GatewayConfig } from '../config.ts'
import type { AwaitedAgents } from '../health/awaited-agents.ts'
import type { OutlierDetector } from '../health/outlier-detector.ts'
import type { GatewayKeys } from '../keys/open-keys.ts'
import type { Records } from '../records/start-records.ts'
import type { CallerAccess } from '../registry/caller-access.ts'
import type { Registry } from '../registry/registry.ts'
import type { DispatcherFor } from './forwarding/agent-target.ts'
import type { AgentTokens } from './forwarding/agent-tokens.ts'
import type { ReportSignal } from './forwarding/forward.ts'
import type { GrantRecords } from './forwarding/grant-records.ts'
import type { NamedAgentOptions } from './forwarding/named-agent.ts'
import { ReferenceGrants } from './forwarding/reference-grants.ts'
import { Corrections } from './learning/corrections.ts'
import { FeedbackRecorder, modelOf } from './learning/feedback.ts'
import { LearnedAgents } from './learning/learned-agents.ts'
import { NamedUses } from './learning/named-uses.ts'
import { countDecision } from './negotiation/count-decision.ts'
import { decisionsKeptMs } from './negotiation/decisions.ts'
import { followRegistry } from './negotiation/follow-registry.ts'
import { Meaning } from './negotiation/meaning.ts'
import { Negotiator, type NegotiatorOptions } from './negotiation/negotiator.ts'
import { textOf } from './negotiation/requirements.ts'
import { NamedAgentRoutes } from './placement/named-agent-routes.ts'
import { TaskLocator } from './placement/task-locator.ts'
import { cursorMaxLength } from './rpc/merged-cursor.ts'
import { MergedLists } from './rpc/merged-lists.ts'
import { MessageRouter } from './rpc/message-router.ts'
import { RpcRouter } from './rpc/rpc-router.ts'
import { Retention } from './store/retention.ts'
import type { RoutingStore } from './store/routing-store.ts'

export interface RoutingOptions {
  config: GatewayConfig
  store: RoutingStore
  registry: Registry
  access: CallerAccess
  detector: OutlierDetector
  gatewayUrl: string
  dispatcherFor: DispatcherFor
  tokens: AgentTokens
  log: Log
  records: Pick<Records, 'series'>
  awaited: AwaitedAgents
  state: { keys: Pick<GatewayKeys, 'secretKey'>; grants: GrantRecords }
  /** Undefined if agents are ranked by words only. */
  encoder?: TextEmbedder | undefined
}

/** Routes calls that name no agent. */
export interface Routing extends Disposable {
  store: RoutingStore
  negotiator: Negotiator
  /** Undefined if agents are ranked by words only. */
  meaning: Meaning | undefined
  feedback: FeedbackRecorder
  uses: NamedUses
  corrections: Corrections
  learned: LearnedAgents
  reportSignal: ReportSignal
  grants: ReferenceGrants
  router: (authenticator: Authenticator, answers: AnswerBudget, named: NamedAgentOptions) => RpcRouter
  namedAgentRoutes: (answers: AnswerBudget) => NamedAgentRoutes
  /** The key of `Cursors`, identical in all gateways on one store. */
  cursorKey: Uint8Array
}

const day = 24 * 60 * 60 * 1000
const keptMs = {
  /** After this long without a message, a task can still be found by querying the agents. */
  routes: 400 * day,
  /** Claims of external agents have their own expiry. */
  claims: 0,
  /** Agents keep idempotency keys equally long. */
  keys: day,
  decisions: decisionsKeptMs,
  trainingExamples: 180 * day,
  /** Since an agent had the text. */
  sentenceVectors: 30 * day,
}

/** Builds the agent index, which follows the registry, and the routers that use it. */
export async function startRouting(options: RoutingOptions): Promise<Routing> {
  const { config, registry, access, detector, dispatcherFor, tokens, log, awaited, store } = options
  // In development, a single person may be the only caller.
  const callersMin = config.production ? 2 : 1
  const index = new AgentIndex({ callersMin })
  const meaning = options.encoder && new Meaning({ index, encoder: options.encoder, store, log })
  followRegistry(registry, index, meaning)
  const feedback = new FeedbackRecorder({
    store,
    log,
    ended: detector.taskEnded.bind(detector),
    model: config.routeLearning ? modelOf(index, async (text) => meaning?.vectorOf(text)) : undefined,
  })
  await feedback.load()
  const storeKey = await store.cursorKey()
  const isAwaited = awaited.isAwaited.bind(awaited)
  const negotiator = negotiatorOf(options, { index, meaning, isAwaited, holderKey: storeKey })
  const taskLocator = new TaskLocator({ store, dispatcherFor, tokens, isAwaited })
  const reportSignal: ReportSignal = (id, sign) =>
    sign === 'answered' ? detector.requestAnswered(id) : detector.requestFailed(id)
  const secretKey = await options.state.keys.secretKey(storeKey)
  const grants = new ReferenceGrants({ secretKey, records: options.state.grants, log })
  const around = {
    uses: new NamedUses({ feedback, textOf, log }),
    registry,
    access,
    store,
    taskLocator,
    feedback,
    dispatcherFor,
    tokens,
    grants,
    reportSignal,
    log,
  }
  const messages = new MessageRouter({
    ...around,
    negotiator,
    minScore: config.routeMinScore,
    sendWaitMaxMs: config.sendWaitMaxMs,
  })
  const cursors = new Cursors(storeKey, cursorMaxLength)
  const lists = new MergedLists({ ...around, isAwaited, cursors })
  const maintenance = startMaintenance(options, index, meaning)
  return {
    store,
    negotiator,
    meaning,
    feedback,
    uses: around.uses,
    corrections: new Corrections({ store, feedback }),
    learned: new LearnedAgents(feedback, callersMin),
    reportSignal,
    grants,
    cursorKey: storeKey,
    router: (authenticator, answers, named) =>
      new RpcRouter({ ...around, authenticator, answers, messages, lists, named }),
    namedAgentRoutes: (answers) => new NamedAgentRoutes({ ...around, answers }),
    [Symbol.dispose]: () => maintenance.dispose(),
  }
}

/** Starts what runs in the background of the routing. */
function startMaintenance(
  { store, log }: RoutingOptions,
  index: AgentIndex,
  meaning: Meaning | undefined,
): DisposableStack {
  const stack = new DisposableStack()
  if (meaning !== undefined) stack.use(meaning)
  const onRound = () => {
    index.learned.refresh()
    void meaning?.markUsed()
  }
  stack.use(new Retention({ store, log, keptMs, onRound }))
  return stack
}

function negotiatorOf(
  options: RoutingOptions,
  parts: Pick<NegotiatorOptions, 'index' | 'meaning' | 'isAwaited' | 'holderKey'>,
): Negotiator {
  const { config, registry, store, gatewayUrl, log, records } = options
  return new Negotiator({
    ...parts,
    registry,
    store,
    gatewayUrl,
    log,
    storesTexts: config.operatorReadsTexts,
    traceId: currentTraceId,
    decided: (record, decision) => countDecision(records.series, record, decision),
  })
}
