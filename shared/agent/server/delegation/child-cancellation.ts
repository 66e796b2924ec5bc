import { RpcError } from '@parley/client/internal/rpc-error'
import type { ChildTask, TaskRecord } from '@parley/engine/store/store'
import type { TaskEngine } from '@parley/engine/tasks/engine'
import { childrenToCancel } from '@parley/engine/tasks/transitions'
import type { Log } from '@parley/kit/process/log'
import { isTerminal } from '@parley/wire/model/task'
import type { AgentConnection } from './agent-connection.ts'
import { ExchangeRefusedError } from './exchanged-tokens.ts'

export interface ChildCancellationParts {
  engine: TaskEngine
  connectionOf: (task: TaskRecord) => AgentConnection | undefined
  log: Log
  /** How often due cancellations are looked up. Default 5 s. */
  intervalMs?: number
}

/** An agent without Parley cannot refuse in advance a message that is on its way, so its task is looked for this long. */
const missingAfterMs = 10_000
/** Cancellations are repeated for this long after the end of the parent. */
const repeatedForMs = 60 * 60 * 1000
const [repeatMinMs, repeatMaxMs] = [1000, 60_000]
const requestMs = 10_000
const batch = 20

/**
 * Cancels the children of tasks that have ended (spec/delegation.md#cancellation). What remains to be canceled is part of the
 * task's record, so it is canceled after a restart, too.
 */
export class ChildCancellation implements Disposable {
  readonly #parts: ChildCancellationParts
  readonly #underWay = new Set<string>()
  readonly #timer: NodeJS.Timeout
  #isStopped = false

  constructor(parts: ChildCancellationParts) {
    this.#parts = parts
    this.#timer = setInterval(() => void this.#cancelDue(), parts.intervalMs ?? 5000)
    this.#timer.unref()
  }

  /** Called after each commit. */
  committed(before: TaskRecord, after: TaskRecord): void {
    if (after.dueAt !== undefined && isTerminal(after.status.state) && !isTerminal(before.status.state))
      void this.#cancel(after)
  }

  [Symbol.dispose](): void {
    this.#isStopped = true
    clearInterval(this.#timer)
  }

  async #cancelDue(): Promise<void> {
    const { store } = this.#parts.engine
    try {
      for (const id of await store.listDue(Date.now(), batch, 'ended')) {
        const record = await store.loadTask(id)
        if (record !== undefined && isTerminal(record.status.state)) await this.#cancel(record)
      }
    } catch (error) {
      if (!this.#isStopped) this.#parts.log.error({ err: error }, 'could not look up children to cancel')
    }
  }

  /** Never rejects. */
  async #cancel(record: TaskRecord): Promise<void> {
    const { id } = record
    if (this.#underWay.has(id) || this.#isStopped) return
    this.#underWay.add(id)
    try {
      const endedMs = Date.now() - Date.parse(record.status.timestamp)
      const open = childrenToCancel(record)
      const outcomes = await Promise.all(open.map((child) => this.#cancelOne(record, child, endedMs)))
      const ended = new Set(open.filter((_child, at) => outcomes[at] === true).map(({ key }) => key))
      await this.#store(record, ended, endedMs)
    } catch (error) {
      if (!this.#isStopped)
        this.#parts.log.warn({ err: error, task_id: id }, 'the children of a task could not be canceled')
    } finally {
      this.#underWay.delete(id)
    }
  }

  async #store(record: TaskRecord, ended: ReadonlySet<string>, endedMs: number): Promise<void> {
    const { engine, log } = this.#parts
    await engine.change(record, (now) => {
      const children = (now.children ?? []).map(
        (child): ChildTask => (ended.has(child.key) ? { ...child, ended: true } : child),
      )
      const left = childrenToCancel({ ...now, children })
      if (left.length === 0) return { kind: 'children', children }
      if (endedMs <= repeatedForMs)
        return { kind: 'children', children, dueAt: Date.now() + repeatDelayMs(endedMs) }
      log.warn(
        { task_id: now.id, children: left.map(({ agent, taskId }) => `${agent}/${taskId}`) },
        'gave up canceling the children of a task',
      )
      return { kind: 'children', children: children.map((child) => ({ ...child, ended: true as const })) }
    })
  }

  /** Whether the child needs no further attempt. */
  async #cancelOne(record: TaskRecord, { key, agent, taskId }: ChildTask, endedMs: number): Promise<boolean> {
    const { log, connectionOf } = this.#parts
    const connection = connectionOf(record)
    if (connection === undefined || taskId === undefined) return true
    try {
      await connection.cancel(agent, { taskId, key }, AbortSignal.timeout(requestMs))
      return true
    } catch (error) {
      if (error instanceof RpcError && error.code === -32002) return true
      if (error instanceof RpcError && error.code === -32001)
        return error.data['reason'] === 'prevented' || endedMs >= missingAfterMs
      if (!(error instanceof ExchangeRefusedError)) return false
      log.warn(
        { task_id: record.id, agent, child: taskId, reason: error.message },
        'a child task cannot be canceled, because the authority for it has ended',
      )
      return true
    }
  }
}

/** Attempts become rarer with the time since the end of the parent. */
function repeatDelayMs(endedMs: number): number {
  return Math.min(Math.max(endedMs, repeatMinMs), repeatMaxMs)
}
