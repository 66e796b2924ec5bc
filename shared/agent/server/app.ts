import type { IncomingMessage, ServerResponse } from 'node:http'
import { startRetention } from '@parley/engine/store/retention'
import type { Store, TaskRecord } from '@parley/engine/store/store'
import { type CommitListener, TaskEngine } from '@parley/engine/tasks/engine'
import { startExpiry } from '@parley/engine/tasks/expiry'
import { Leases } from '@parley/engine/tasks/leases'
import { recover } from '@parley/engine/tasks/recovery'
import { StateCounts } from '@parley/engine/tasks/state-counts'
import { startSweep } from '@parley/engine/tasks/sweep'
import { UsageRollup } from '@parley/engine/tasks/usage-rollup'
import { WorkStats } from '@parley/engine/tasks/work-stats'
import { globalWebhookOf } from '@parley/engine/webhooks/global-webhook'
import { startWebhooks } from '@parley/engine/webhooks/start-webhooks'
import { Authenticator } from '@parley/kit/auth/authenticate'
import type { ClientKeys } from '@parley/kit/auth/client-keys'
import type { SharedSignatures, SignatureRules } from '@parley/kit/auth/did-signature'
import type { Introspector } from '@parley/kit/auth/introspection'
import { cardSigner } from '@parley/kit/did/card-signature'
import { agentId } from '@parley/kit/did/did'
import type { Identity } from '@parley/kit/did/identity'
import { addDidRoutes } from '@parley/kit/http/did-routes'
import { addHealthRoute } from '@parley/kit/http/health-routes'
import { addMetricsRoute } from '@parley/kit/http/metrics'
import { openLimits } from '@parley/kit/http/request-limits'
import { createServer } from '@parley/kit/http/server'
import { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { AgentConfig } from '@parley/kit/process/config'
import type { Log } from '@parley/kit/process/log'
import { createMetrics, createTaskMetrics, type Metrics, type TaskMetrics } from '@parley/kit/process/metrics'
import { version } from '@parley/kit/process/version'
import { createWebhookMetrics } from '@parley/kit/process/webhook-metrics'
import { isTerminal } from '@parley/wire/model/task'
import type { FastifyInstance } from 'fastify'
import type { Agent } from '../author/agent.ts'
import type { Delegation } from '../author/delegation.ts'
import { publicPrice } from '../author/price-of.ts'
import {
  openPayments,
  openQueue,
  openStore,
  type PaymentBackend,
  type QueueBackend,
  type StoreBackend,
} from './backends.ts'
import { ChildCancellation } from './delegation/child-cancellation.ts'
import { type DelegationOptions, GatewayDelegation, noDelegation } from './delegation/delegation.ts'
import { addRoutesOfPayments } from './http/add-payments.ts'
import { addChallengeRoute } from './http/challenge-route.ts'
import { addDiscoveryRoutes } from './http/discovery-routes.ts'
import { addNegotiationRoute } from './http/negotiation-route.ts'
import { operatorAccess } from './http/operator/operator-access.ts'
import { addOperatorRoutes } from './http/operator/operator-routes.ts'
import { addRpcRoutes } from './http/rpc-routes.ts'
import { Dispatcher } from './methods/dispatch.ts'
import { ForeignTasks } from './methods/foreign-task.ts'
import type { Services } from './methods/method.ts'
import { type RunnerParts, TaskRunner } from './runner/run-task.ts'
import { usageCounter } from './runner/usage.ts'
import { closeServer, drain } from './shutdown.ts'
import { TaskLog } from './task-log.ts'

export interface AgentAppOptions {
  agent: Agent
  identity: Identity
  config: AgentConfig
  /** Checks tokens. `/health` calls its `ping`. */
  introspector: Introspector & { ping(): Promise<void> }
  /** Reads callers' public keys. If absent, signed requests are refused. */
  clientKeys?: ClientKeys
  /** The gateway at which all agents of a deployment claim signed requests. If absent, only this agent checks for replays. */
  signatureClaims?: Pick<SharedSignatures, 'claimSignature'>
  /** How tasks call other agents through the gateway, or a replacement in tests. If absent, calls fail. */
  delegation?: DelegationOptions | Delegation | undefined
  /** Returns this agent's own token for the gateway, with the scope agent:read. */
  ownToken?: (() => Promise<string>) | undefined
  log: Log
  /** STORE_URL, a MongoDB database. Default: the embedded store. */
  storeUrl?: string | undefined
  /** REDIS_URL, through which this agent's processes share the queue and events. Default: this is the only process. */
  redisUrl?: string | undefined
  /** The name of this agent's data in Redis, without colons. Default: the ID of the agent. */
  redisName?: string | undefined
  /** WEBHOOK_TOKEN, the token of the global webhook. */
  webhookToken?: string | undefined
  /** How long running handlers may take to finish when the agent stops, in milliseconds. Default 10,000. */
  drainMs?: number
  /** The address of the server that passes requests to `AgentApp.handle`. Default: the app listens itself. */
  servedAt?: string
  /** Called after each commit. Must not block or throw. */
  committed?: CommitListener
}

/** How long pending webhook deliveries may take when the agent stops. */
const webhooksDrainMs = 3000

/** A listening agent server. Disposal stops it gracefully. */
export interface AgentApp extends AsyncDisposable {
  /** The address that the server listens on, for example `http://127.0.0.1:7401`. */
  address: string
  /** The address that clients use, which the card names. */
  baseUrl: string
  services: Services
  /** Whether webhook events of this process are not delivered yet. */
  hasPendingWebhooks(): boolean
  /** Answers a request of another server. */
  handle(request: IncomingMessage, response: ServerResponse): void
}

/** The composition root of an agent: creates every part and passes it to the parts that use it. */
export async function startAgentApp(options: AgentAppOptions): Promise<AgentApp> {
  const { agent, config, log, redisUrl, storeUrl } = options
  const { did, document, key } = options.identity
  await using stack = new AsyncDisposableStack()
  const id = agentId(did)
  const { store, backend } = await openStore({ storeUrl, storeDir: config.storeDir, agentId: id, log })
  stack.use(store)
  const metrics = createMetrics()
  const shared = { redisUrl, agentId: options.redisName ?? id, concurrency: agent.concurrency, log }
  const queue = await openQueue(shared, stack)
  const stopping = new AbortController()
  const parts = await assemble(options, { store, queue, metrics, stopping: stopping.signal }, stack)
  const { services, authenticator, limits } = parts
  const dispatcher = new Dispatcher(services, authenticator, new AnswerBudget(config.answers))
  const listening: string[] = []
  const deprecations = [...(config.deprecations ?? []), ...(agent.deprecations ?? [])]
  const served = { ...config, deprecations, log, metrics, limits }
  const app = stack.adopt(createServer(served), (server) => server.close())
  addRpcRoutes(app, { dispatcher, log, stopping: stopping.signal })
  addDidRoutes(app, (requested) => (requested === did ? document : undefined))
  addChallengeRoute(app, { did, key, addresses: () => [services.baseUrl(), ...listening] })
  addDiscoveryRoutes(app, { ...services, log })
  await addRoutesOfPayments(app, services, authenticator, {
    captureBaseUrl: config.payments.captureBaseUrl,
    ownClients: [did, ...(config.oauth.clientId === undefined ? [] : [config.oauth.clientId])],
  })
  const [price] = publicPrice(agent) ?? []
  const cost = price && { price: { amount: price.amount } }
  addNegotiationRoute(app, () => ({ skills: agent.skills, queueDepth: services.scheduler.waiting, ...cost }))
  await addOperatorRoutes(app, { ...parts, log })
  addMetricsRoute(app, metrics)
  const health = healthOptions(options, services, { queue, backend }, () => dispatcher.draining)
  addHealthRoute(app, health)
  if (store.exclusive) await recover({ ...services, log, signal: stopping.signal })
  // This follows the recovery of tasks, because the recovery of payments reads them from the store.
  if (store.exclusive) await services.payments?.recover()
  const address = await listen(app, options)
  parts.listensAt(address)
  listening.push(address)
  // This comes last, because a failed start (port in use) must not count as a start of the waiting tasks.
  services.scheduler.start((job) => services.runner.run(job))
  if (queue.backend !== 'in-process' || !store.exclusive)
    stack.use(startSweep({ store, scheduler: services.scheduler, runner: services.runner, log }))
  services.payments?.start()
  const open = stack.move()
  return {
    address,
    baseUrl: services.baseUrl(),
    services,
    hasPendingWebhooks: () => parts.webhooks?.dispatcher.isBusy() ?? false,
    handle: (request, response) => app.routing(request, response),
    [Symbol.asyncDispose]: async () => {
      dispatcher.drain()
      await drain(services, options.drainMs ?? 10_000)
      await parts.webhooks?.dispatcher.drain(webhooksDrainMs)
      stopping.abort()
      await closeServer(app)
      await open.disposeAsync()
    },
  }
}

/** Returns the address at which the server is reachable. */
async function listen(app: FastifyInstance, { config, servedAt }: AgentAppOptions): Promise<string> {
  await app.ready()
  return servedAt ?? app.listen({ host: config.host, port: config.port })
}

type Backends = { store: Store; queue: QueueBackend; metrics: Metrics; stopping: AbortSignal }

/** Creates the task engine, and the webhooks and payments that follow its commits. */
async function assembleEngine(
  options: AgentAppOptions,
  { store, queue: { bus, scheduler }, metrics }: Backends,
  listeners: { canceled: (task: TaskRecord) => void; committed: CommitListener },
  baseUrl: () => string,
) {
  const { agent, config, log } = options
  const { did } = options.identity
  let counts: StateCounts | undefined
  const refresh = async () => counts?.refresh()
  const named = { id: agentId(did), name: agent.name }
  const taskMetrics = createTaskMetrics(metrics.registry, named, store.exclusive ? undefined : refresh)
  const webhooks = await webhooksOf(options, store, metrics)
  let paid: PaymentBackend | undefined
  const usage = new UsageRollup({ store: store.usage, log })
  const taskLog = new TaskLog(log)
  const committed: CommitListener = (before, after) => {
    taskLog.committed(before, after)
    webhooks?.committed(before, after)
    usage.committed(before, after)
    if (after.status.state === 'canceled') listeners.canceled(before)
    listeners.committed(before, after)
    options.committed?.(before, after)
    if (after.payments !== undefined && isTerminal(after.status.state))
      paid?.payments.taskEnded(after.payments)
  }
  const accepted = (task: TaskRecord) => {
    taskLog.accepted(task)
    usage.accepted(task)
  }
  const engine = new TaskEngine({
    store,
    bus,
    metrics: taskMetrics,
    agentId: agentId(did),
    committed,
    accepted,
  })
  await engine.countStored()
  counts = new StateCounts({ count: () => engine.countStored(), log })
  const { registry } = metrics
  paid = await openPayments({ agent, did, store, engine, scheduler, config, log, registry, baseUrl })
  return { webhooks, engine, paid, taskMetrics, usage }
}

async function assemble(options: AgentAppOptions, backends: Backends, stack: AsyncDisposableStack) {
  const { store, queue, stopping } = backends
  const { agent, config, log } = options
  const { did } = options.identity
  const { bus, scheduler } = queue
  let runner: TaskRunner | undefined
  // The queue holds the task's version from before the cancellation.
  const canceled = ({ id, version, owner }: TaskRecord) => {
    scheduler.discard({ taskId: id, version, owner })
    runner?.forget(id)
  }
  const delegation = delegationOf(options)
  let cancellation: ChildCancellation | undefined
  const committed: CommitListener = (before, after) => cancellation?.committed(before, after)
  let baseUrl = config.publicUrl ?? `http://${config.host}:${config.port}`
  const listeners = { canceled, committed }
  const assembled = await assembleEngine(options, backends, listeners, () => baseUrl)
  const { webhooks, engine, paid, taskMetrics } = assembled
  const usage = stack.use(assembled.usage)
  if (delegation instanceof GatewayDelegation) {
    const connectionOf = (task: TaskRecord) => delegation.connectionOf(task)
    cancellation = stack.use(new ChildCancellation({ engine, connectionOf, log }))
  }
  if (webhooks !== undefined) stack.use(webhooks)
  if (paid !== undefined) stack.use(paid.payments)
  const leases = stack.use(new Leases({ store, log }))
  const figures = new WorkStats()
  runner = runnerOf(options, { engine, bus, leases, figures, delegation, taskMetrics, paid, usage })
  stack.use(startExpiry(engine, log))
  stack.use(startRetention({ store, days: config.retentionDays, log }))
  const services: Services = {
    agent,
    store,
    engine,
    runner,
    scheduler,
    bus,
    figures,
    registrations: webhooks?.registrations,
    payments: paid?.payments,
    usage,
    ...(delegation instanceof GatewayDelegation && { authority: delegation.seal }),
    ...(config.gatewayUrl !== undefined && {
      foreignTasks: new ForeignTasks({ gatewayUrl: config.gatewayUrl, ownToken: options.ownToken }),
    }),
    taskQueueMax: config.taskQueueMax,
    sendWaitMaxMs: config.sendWaitMaxMs,
    stopping,
    baseUrl: () => baseUrl,
    did,
    signCard: cardSigner(options.identity),
  }
  const callers = await assembleCallers(options, services, stack)
  const listensAt = (address: string) => {
    baseUrl = config.publicUrl ?? address
  }
  return { services, ...callers, listensAt, webhooks }
}

function delegationOf({ delegation, identity }: AgentAppOptions): Delegation {
  if (delegation === undefined) return noDelegation
  return 'open' in delegation ? delegation : new GatewayDelegation(delegation, identity)
}

function runnerOf(
  { agent, config, identity, clientKeys, log }: AgentAppOptions,
  parts: Pick<RunnerParts, 'engine' | 'bus' | 'leases' | 'figures' | 'delegation'> & {
    taskMetrics: TaskMetrics
    paid: PaymentBackend | undefined
    usage: UsageRollup
  },
): TaskRunner {
  const { taskMetrics, paid, usage, ...given } = parts
  const count = usageCounter(taskMetrics, agentId(identity.did))
  return new TaskRunner({
    ...given,
    agent,
    log,
    usage: (tokens, owner) => {
      count(tokens)
      usage.reported(tokens, owner)
    },
    artifactMaxBytes: config.artifactMaxBytes,
    key: identity.key,
    ...(clientKeys !== undefined && { clientKeys }),
    fileAllowedHosts: config.fileAllowedHosts,
    prompt: paid?.prompt,
    isStillPaid: paid?.isStillPaid,
  })
}

/** Creates authentication and rate limits. */
async function assembleCallers(
  options: AgentAppOptions,
  { store, baseUrl, did }: Services,
  stack: AsyncDisposableStack,
) {
  const { config, introspector, log, redisUrl, redisName: name = agentId(did) } = options
  const perMinute = config.rateLimitPerMinute
  const limits = await openLimits({ perMinute, redisUrl, name, log }, stack)
  const watched = limits?.watch(introspector) ?? introspector
  const own = () => [baseUrl(), did]
  const audiences = () => [...own(), ...config.audiences]
  const accepted = {
    takeProof: (proof: Uint8Array, until: number) => store.takeSignature('dpop', proof, until),
  }
  const authenticator = new Authenticator(watched, audiences, {
    signatures: signatureRules(options, store, own),
    // A gateway checks the proofs of its own callers, so that a proof is not accepted there and here.
    proofs: { accepted, addresses: () => [baseUrl()] },
    requiredResource: config.requireAudience ? () => did : undefined,
  })
  const operatorOf = operatorAccess({ gatewayUrl: config.gatewayUrl, names: own, store, limits })
  return { limits, authenticator, operatorOf }
}

/** Undefined for an agent without push notifications; stored webhooks then receive no events (spec/webhooks.md#capability). */
async function webhooksOf(
  { agent, config, identity, log, webhookToken, redisUrl, redisName }: AgentAppOptions,
  store: Store,
  metrics: Metrics,
) {
  if (!agent.capabilities.pushNotifications) return undefined
  return startWebhooks({
    store,
    redisUrl,
    agentId: redisName ?? agentId(identity.did),
    allowed: config.webhookAllowedHosts,
    globalWebhook: globalWebhookOf(agent.globalWebhook, { url: config.webhookUrl, token: webhookToken }),
    metrics: createWebhookMetrics(metrics.registry, agentId(identity.did)),
    log,
  })
}

/** @param own audiences that no other agent accepts */
function signatureRules(
  { agent, clientKeys, signatureClaims }: AgentAppOptions,
  store: Store,
  own: () => readonly string[],
): SignatureRules {
  const shared: SharedSignatures | undefined = signatureClaims && {
    claimSignature: (did, signature) => signatureClaims.claimSignature(did, signature),
    isOnlyHere: (audience) => own().includes(audience.replace(/\/+$/, '')),
  }
  return {
    ...(clientKeys !== undefined && { clientKeys }),
    ...(agent.signatures === 'required' && { required: { accepted: store, ...(shared && { shared }) } }),
  }
}

function healthOptions(
  options: AgentAppOptions,
  services: Services,
  { queue, backend }: { queue: QueueBackend } & Pick<StoreBackend, 'backend'>,
  draining: () => boolean,
) {
  const { config, introspector } = options
  const { did } = options.identity
  return {
    version,
    id: agentId(did),
    did,
    environment: config.production ? 'production' : 'development',
    storageBackend: backend,
    schedulerBackend: queue.backend,
    taskManagerRunning: () => services.scheduler.running,
    draining,
    mandatory: {
      storage: () => services.store.ping(),
      scheduler: () => services.scheduler.ping(),
      bus: () => services.bus.ping(),
    },
    optional: { oauth: () => introspector.ping() },
  }
}
