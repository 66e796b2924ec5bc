import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import type { EventBus } from '@parley/engine/events/event-bus'
import type { Job } from '@parley/engine/queue/scheduler'
import type { ChildTask, TaskRecord } from '@parley/engine/store/store'
import { agentMessage, failed } from '@parley/engine/tasks/agent-message'
import type { TaskDraft, TaskEngine } from '@parley/engine/tasks/engine'
import type { Leases } from '@parley/engine/tasks/leases'
import { NewTaskCache } from '@parley/engine/tasks/new-task-cache'
import type { Change } from '@parley/engine/tasks/transitions'
import type { WorkStats } from '@parley/engine/tasks/work-stats'
import type { ClientKeys } from '@parley/kit/auth/client-keys'
import { persistently } from '@parley/kit/database/retry'
import type { KeyPair } from '@parley/kit/did/keys'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import type { Log } from '@parley/kit/process/log'
import type { Agent } from '../../author/agent.ts'
import type { Agents } from '../../author/agents.ts'
import { OutputCollector } from '../../author/collect-output.ts'
import type { HandlerContext } from '../../author/context.ts'
import type { Delegation, RunCalls } from '../../author/delegation.ts'
import { atDeadline, type Deadline, deadlineOf } from './deadline.ts'
import { executeHandler } from './execute-handler.ts'
import { LiveDeltas } from './live-deltas.ts'
import { changeOfError, changeOfOutput, isTooLarge } from './outcome.ts'
import type { PaymentPrompt, PaymentRequest } from './payment-prompt.ts'
import { prepareRun } from './prepare-run.ts'
import { RunChanges } from './run-changes.ts'
import { traceHandler, traceOutcome, traceRun } from './trace-run.ts'
import { RunUsage } from './usage.ts'

export interface RunnerParts {
  engine: TaskEngine
  bus: EventBus
  agent: Agent
  leases: Leases
  log: Log
  figures: WorkStats
  /** Counts the tokens that the handler of a task of this owner reports. */
  usage: (tokens: Parameters<HandlerContext['usage']>[0], owner: string) => void
  artifactMaxBytes: number
  /** Makes the request for a payment during a task; absent for agents without a price. */
  prompt?: ((record: TaskRecord, request: PaymentRequest) => PaymentPrompt) | undefined
  /** Checks whether the payments of a task are still valid; absent for agents without a price. */
  isStillPaid?: ((record: TaskRecord) => Promise<boolean>) | undefined
  /** Signs the parts of artifacts. */
  key: KeyPair
  /** If absent, signatures of callers' parts cannot be verified. */
  clientKeys?: ClientKeys
  /** Makes the calls of other agents. */
  delegation: Delegation
  /** Exceptions to the private-address guard for files with a `uri`. Default: none. */
  fileAllowedHosts?: AllowedHosts
  /** How long an aborted handler may take before its worker is reused. Default 5 s. */
  abortGraceMs?: number
}

/** The longest delay before a failed commit is retried, and the shortest interval between log lines about it. */
const [retryMaxMs, logEveryMs] = [2000, 10_000]
/** The delay before a failed read is retried. */
const readRetryMs = 500
/** A task fails if its process died during this many starts. */
export const startsMax = 3
/** The limit on all starts. A handler that blocks the event loop loses its lease each time without ending the process. */
const allStartsMax = 10

/** Runs queued tasks until they end, pause, or are taken over by another process. */
export class TaskRunner {
  readonly #parts: RunnerParts
  readonly #fresh = new NewTaskCache()
  readonly #underWay = new Map<string, Promise<number | undefined>>()
  readonly #running = new Map<string, AbortController>()
  readonly #awaited = new Map<string, () => void>()
  readonly #heldBack = new Set<string>()
  readonly #stop = new AbortController()
  readonly #stopping = this.#stop.signal

  constructor(parts: RunnerParts) {
    this.#parts = parts
  }

  /** Returns the lease of a task created while a worker is free, which this process holds from the beginning. */
  lease(): { holder: string; until: number } {
    return this.#parts.leases.lease()
  }

  get holder(): string {
    return this.#parts.leases.holder
  }

  /** Keeps a new record so that its first run need not read it. Does nothing if another process could run the task first. */
  remember(record: TaskRecord, firstOfContext: boolean): void {
    const runsHere = record.lease !== undefined || this.#parts.engine.store.exclusive
    if (runsHere) this.#fresh.put(record, firstOfContext)
  }

  /** Drops the kept record of a task that has ended. */
  forget(taskId: string): void {
    this.#fresh.delete(taskId)
  }

  /** Ignores jobs for these tasks until `letRun`, because a shared queue or the sweep may deliver a job too early. */
  holdBack(taskIds: Iterable<string>): void {
    for (const id of taskIds) this.#heldBack.add(id)
  }

  letRun(taskId: string): void {
    this.#heldBack.delete(taskId)
  }

  isHeldBack(taskId: string): boolean {
    return this.#heldBack.has(taskId)
  }

  /** Resolves when the next run of the task begins. Supports one waiter per task. */
  whenStarted(taskId: string): Promise<void> {
    return new Promise((resolve) => this.#awaited.set(taskId, resolve))
  }

  /**
   * Never rejects; internal errors are logged. A failed commit is retried until the process stops. Resolves with the time at
   * which the lease of another process ends, if one holds the task.
   */
  run(job: Job): Promise<number | undefined> {
    // A job is delivered at least once. If it arrives while its task is running, it waits for the end of that run.
    const before = this.#underWay.get(job.taskId)
    const run = before === undefined ? this.#run(job) : before.then(() => this.#run(job))
    this.#underWay.set(job.taskId, run)
    return run.finally(() => {
      if (this.#underWay.get(job.taskId) === run) this.#underWay.delete(job.taskId)
    })
  }

  async #run(job: Job): Promise<number | undefined> {
    if (this.#heldBack.has(job.taskId)) return undefined
    this.#awaited.get(job.taskId)?.()
    this.#awaited.delete(job.taskId)
    const kept = this.#fresh.take(job)
    try {
      const record = kept?.record ?? (await this.#load(job.taskId))
      if (record === undefined) return undefined
      const heldUntil = this.#parts.leases.heldUntil(record)
      if (heldUntil !== undefined) return heldUntil
      if (!isRunnable(record)) return undefined
      const by = { agent: this.#parts.agent.name, holder: this.holder }
      await traceRun(record, by, () => this.#takeUp(record, kept?.firstOfContext ?? false))
    } catch (error) {
      this.#parts.log.error({ err: error, task_id: job.taskId }, 'task run failed')
    }
    return undefined
  }

  /** Loads the task; while the store is unavailable, retries until the process stops. */
  #load(taskId: string): Promise<TaskRecord | undefined> {
    const { engine, log } = this.#parts
    return persistently(() => engine.store.loadTask(taskId), {
      retryMs: readRetryMs,
      signal: this.#stopping,
      log,
    })
  }

  /** Aborts every running handler. Their tasks stay `working` without a lease and run again at the next start. */
  stop(): void {
    this.#stop.abort()
    for (const abort of this.#running.values()) abort.abort(new Stopped('stopping'))
  }

  async #takeUp(record: TaskRecord, firstOfContext: boolean): Promise<void> {
    const { engine, agent, leases } = this.#parts
    const { state } = record.status
    const claimed = record.lease?.holder === leases.holder
    const reason = claimed ? undefined : startedTooOften(record)
    const draft = engine.draft(record)
    const restarted = !claimed && state === 'working' && agent.onRestart === 'fail'
    if (reason !== undefined || restarted) {
      // There is only one attempt, because the reason no longer applies if another process has changed the task.
      draft.apply(failed(record, reason ?? 'The agent restarted while this task ran.'))
      await this.#commit(draft)
      return
    }
    draft.apply({ kind: 'pick-up', lease: leases.lease() })
    // The start is stored before the handler runs, either when the task is created or here.
    if ((!claimed || agent.onRestart === 'fail') && !(await this.#commit(draft))) return
    await this.#execute(draft, firstOfContext)
  }

  async #execute(draft: TaskDraft, firstOfContext: boolean): Promise<void> {
    const { bus, agent, leases, log } = this.#parts
    const { id } = draft.record
    const abort = new AbortController()
    const deltas = new LiveDeltas(bus, draft.record)
    const began = performance.now()
    const deadline = deadlineOf(agent, draft.record)
    this.#running.set(id, abort)
    using _lease = leases.keep(id, () => abort.abort(new Stopped('taken')))
    const changes = new RunChanges(draft, () => this.#commit(draft))
    const calls = this.#callsOf(draft.record, { deadline, signal: abort.signal, changes })
    const run: HandlerRun = {
      firstOfContext,
      signal: abort.signal,
      deltas,
      changes,
      began,
      agents: () => calls().agents,
    }
    const handled = this.#handle(draft.record, run)
    let settled = false
    const outcome = handled.finally(() => (settled = true))
    try {
      await Promise.race([outcome, nextTurn()])
      if (settled) {
        await this.#finish(draft, await outcome, changes)
        return
      }
      // The subscription precedes the commit, so that a cancellation either makes the commit fail or arrives as an event.
      using _cancel = bus.subscribe(id, (item) => {
        if (item.kind === 'status-update' && item.final) abort.abort(new Stopped('canceled'))
      })
      using _deadline = atDeadline(deadline, () => abort.abort(new Stopped('deadline')))
      // The stored start runs the task again if a failure of the machine loses this commit.
      const isOurs = await this.#commit(draft, true)
      changes.open(isOurs)
      if (isOurs) deltas.goLive()
      else abort.abort(new Stopped('taken'))
      await Promise.race([outcome, aborted(abort.signal)])
      await this.#settle(draft, outcome, { abort, deadline, changes })
    } finally {
      await changes.close()
      this.#running.delete(id)
      traceOutcome(draft.record)
      log.debug({ task_id: id, state: draft.record.status.state }, 'task run ended')
    }
  }

  async #settle(
    draft: TaskDraft,
    outcome: Promise<Change>,
    run: { abort: AbortController; deadline: Deadline | undefined; changes: RunChanges },
  ): Promise<void> {
    const { abort, deadline, changes } = run
    const why: unknown = abort.signal.aborted ? abort.signal.reason : undefined
    if (!(why instanceof Stopped)) return this.#finish(draft, await outcome, changes)
    if (why.cause === 'taken') this.#noteSurvived(draft.record)
    if (why.cause === 'deadline')
      await this.#finish(draft, failed(draft.record, deadline?.reason ?? ''), changes)
    if (why.cause === 'stopping') await this.#finish(draft, { kind: 'release' }, changes)
    const grace = setTimeoutPromise(this.#parts.abortGraceMs ?? 5000)
    await Promise.race([outcome.catch(() => {}), grace.promise])
    grace.clear()
  }

  /** If the commit loses a race because the task was canceled or taken over, the winner has published the result. */
  async #finish(draft: TaskDraft, change: Change, changes: RunChanges): Promise<void> {
    await changes.close()
    const started = draft.record
    draft.apply(change)
    const committed = await this.#commit(draft).catch((error: unknown) => {
      if (!isTooLarge(error)) throw error
      draft.revertTo(started)
      draft.apply(failed(started, error.message))
      return this.#commit(draft)
    })
    if (!committed) return this.#noteSurvived(started)
    const { id, status, workedMs } = draft.record
    if (status.state === 'completed' || status.state === 'failed')
      this.#parts.figures.recordOutcome(status.state, workedMs, id)
  }

  /** Most handlers call no other agents, so the calls are made when they are used. */
  #callsOf(
    task: TaskRecord,
    run: { deadline: Deadline | undefined; signal: AbortSignal; changes: RunChanges },
  ): () => RunCalls {
    const { deadline, signal, changes } = run
    let calls: RunCalls | undefined
    return () => {
      if (calls !== undefined) return calls
      const save = (list: ChildTask[]) => changes.save(list)
      calls = this.#parts.delegation.open({ task, deadlineAt: deadline?.at, signal, save })
      changes.follow(calls)
      return calls
    }
  }

  /** Another process took over the task although this process is alive, so the start must not count as a crash. */
  #noteSurvived({ id, starts }: TaskRecord): void {
    this.#parts.engine.store.noteSurvived(id, starts).catch((error: unknown) => {
      this.#parts.log.debug(
        { err: error, task_id: id },
        'could not record that the process survived a lost run',
      )
    })
  }

  /**
   * Retries while the store is unavailable or its disk is full, so that the handler's output is not lost.
   * Resolves with false if another process has changed the task.
   * @param soon as for `Store.commitTask`
   */
  async #commit(draft: TaskDraft, soon = false): Promise<boolean> {
    let loggedAt = Number.NEGATIVE_INFINITY
    for (let waitMs = 250; ; waitMs = Math.min(waitMs * 2, retryMaxMs)) {
      try {
        return await draft.commit(soon)
      } catch (error) {
        if (this.#stopping.aborted || isTooLarge(error)) throw error
        if (performance.now() - loggedAt >= logEveryMs) {
          this.#parts.log.error({ err: error, task_id: draft.record.id }, 'commit failed; retrying')
          loggedAt = performance.now()
        }
        await wait(waitMs, undefined, { signal: this.#stopping, ref: false }).catch(() => {})
        draft.extendLease(this.#parts.leases.lease())
      }
    }
  }

  /** Runs the handler and returns the change of its task. Never rejects. */
  async #handle(
    record: TaskRecord,
    { firstOfContext, signal, deltas, changes, began, agents }: HandlerRun,
  ): Promise<Change> {
    const { agent, engine, artifactMaxBytes, fileAllowedHosts, key, prompt } = this.#parts
    const usage = new RunUsage((tokens) => this.#parts.usage(tokens, record.owner))
    let child: Log | undefined
    const log = () => (child ??= this.#parts.log.child({ task_id: record.id, context_id: record.contextId }))
    try {
      const prepared = await prepareRun({
        agent,
        store: engine.store,
        record,
        firstOfContext,
        signal,
        log,
        usage: usage.report,
        agents,
        clientKeys: this.#parts.clientKeys,
        isStillPaid: this.#parts.isStillPaid,
        files: { maxBytes: artifactMaxBytes, allowed: fileAllowedHosts },
      })
      if ('ends' in prepared) return prepared.ends
      const collector = new OutputCollector(artifactMaxBytes)
      const collected = await traceHandler(usage, () =>
        executeHandler(agent.handle, prepared.context, collector, {
          delta: (part, artifact) => deltas.add(part, artifact),
          progress: (parts) => changes.report(agentMessage(record, parts)),
        }),
      )
      const workedMs = Math.round(performance.now() - began)
      const { artifactIds } = deltas
      return changeOfOutput(record, collected, { artifactIds, workedMs, key, prompt, usage: usage.total })
    } catch (error) {
      if (!signal.aborted) log().warn({ err: error }, 'handler failed')
      return changeOfError(record, error)
    }
  }
}

/** What a run of the handler uses, except the task. */
interface HandlerRun {
  firstOfContext: boolean
  signal: AbortSignal
  deltas: LiveDeltas
  changes: RunChanges
  /** When the run began, by `performance.now()`. */
  began: number
  agents: () => Agents
}

/** A task that is held waits for its payment. The job is delivered again once the payment is settled. */
function isRunnable({ status: { state }, heldBy }: TaskRecord): boolean {
  return (state === 'submitted' || state === 'working') && heldBy === undefined
}

function startedTooOften({ starts, survived = 0 }: TaskRecord): string | undefined {
  if (starts - survived >= startsMax) {
    return `The agent's process ended ${startsMax} times while this task ran.`
  }
  if (starts < allStartsMax) return undefined
  return `The task was started ${starts} times, and its process ended or stopped responding each time.`
}

/** The reason why a handler was aborted. */
class Stopped extends Error {
  override readonly name = 'AbortError'
  constructor(why: 'canceled' | 'deadline' | 'stopping' | 'taken') {
    super(`the task was stopped: ${why}`, { cause: why })
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

function setTimeoutPromise(ms: number): { promise: Promise<void>; clear: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  return { promise, clear: () => clearTimeout(timer) }
}
