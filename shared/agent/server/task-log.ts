import type { TaskRecord } from '@parley/engine/store/store'
import { frequentLog, type Log } from '@parley/kit/process/log'
import { traceIdOf } from '@parley/kit/telemetry/trace-context'
import { isTerminal } from '@parley/wire/model/task'
import { millisOf } from '@parley/wire/model/timestamp'

/** Logs one line when a task is accepted and one when it has ended, without its texts (spec/operations.md#logs). */
export class TaskLog {
  readonly #log: Log

  constructor(log: Log) {
    this.#log = frequentLog(log)
  }

  accepted(task: TaskRecord): void {
    if (!this.#log.isLevelEnabled('info')) return
    this.#log.info({ ...fieldsOf(task), state: task.status.state }, 'task accepted')
  }

  /** Called after each commit. */
  committed(before: TaskRecord, after: TaskRecord): void {
    const { state, timestamp } = after.status
    if (!isTerminal(state) || isTerminal(before.status.state) || !this.#log.isLevelEnabled('info')) return
    const createdAt = millisOf(after.createdAt)
    const started = after.events.find(
      (event) => event.kind === 'status-update' && event.status.state === 'working',
    )
    this.#log.info(
      {
        ...fieldsOf(after),
        state,
        duration_ms: millisOf(timestamp) - createdAt,
        ...(started !== undefined && { queued_ms: millisOf(started.timestamp) - createdAt }),
        worked_ms: after.workedMs,
        starts: after.starts,
      },
      'task ended',
    )
  }
}

/** The name of the agent is that of the logger. */
function fieldsOf({ id, contextId, owner, delegation, trace }: TaskRecord) {
  const traceId = traceIdOf(trace)
  return {
    task_id: id,
    context_id: contextId,
    owner: delegation?.subject ?? owner,
    ...(delegation !== undefined && { delegate: delegation.delegate }),
    ...(traceId !== undefined && { trace_id: traceId }),
  }
}
