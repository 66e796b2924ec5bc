import type { Log } from '@parley/kit/process/log'
import type { EventBus } from '../events/event-bus.ts'
import type { Scheduler } from '../queue/scheduler.ts'
import type { TaskRecord, UnfinishedTask } from '../store/store.ts'
import { failed } from './agent-message.ts'
import type { TaskEngine } from './engine.ts'

/** The part of the runner that recovery uses. */
interface SuspectRunner {
  /** The name that identifies this process in leases. */
  readonly holder: string
  /** Prevents the tasks from starting until `letRun` is called. */
  holdBack(taskIds: string[]): void
  letRun(taskId: string): void
  /** Resolves when the task starts in this process. */
  whenStarted(taskId: string): Promise<void>
}

interface RecoveryParts {
  engine: TaskEngine
  scheduler: Scheduler
  runner: SuspectRunner
  bus: EventBus
  agent: { onRestart: 'run' | 'fail' }
  log: Log
  /** Aborts at shutdown. The remaining suspects are recovered at the next start. */
  signal: AbortSignal
  /** How long a suspect runs alone before the next one starts. Default 3 s. */
  suspectAloneMs?: number
}

/**
 * Recovers an earlier process's tasks. A task that was running when the process died may have caused the
 * crash, so these tasks run one after the other, starting with the fewest starts. This prevents a crashing
 * task from using up the starts of the others.
 */
export async function recover(parts: RecoveryParts): Promise<void> {
  const { engine, scheduler, runner, agent, log } = parts
  const unfinished = await engine.store.listUnfinished(Date.now(), runner.holder)
  if (unfinished.length === 0) return
  const suspects: TaskRecord[] = []
  for (const task of unfinished) {
    // A leased task may have run even if its `working` state was not committed. With `fail`, that state is
    // always committed first, so tasks that were released at shutdown are included.
    const mayHaveRun = agent.onRestart === 'run' ? task.leased : task.state === 'working'
    const record = mayHaveRun ? await engine.store.loadTask(task.id) : undefined
    if (record === undefined) enqueue(scheduler, task)
    else if (agent.onRestart === 'run') suspects.push(record)
    else await engine.change(record, (now) => failed(now, 'The agent restarted while this task ran.'))
  }
  log.info({ tasks: unfinished.length, suspects: suspects.length }, 'recovering tasks of an earlier process')
  runner.holdBack(suspects.map(({ id }) => id))
  void runAlone(
    parts,
    suspects.sort((a, b) => a.starts - b.starts),
  )
}

async function runAlone(parts: RecoveryParts, suspects: TaskRecord[]): Promise<void> {
  const { bus, runner, scheduler, signal, suspectAloneMs = 3000 } = parts
  for (const suspect of suspects) {
    if (signal.aborted) return
    const ended = Promise.withResolvers<void>()
    const stop = () => ended.resolve()
    signal.addEventListener('abort', stop, { once: true })
    using _end = bus.subscribe(suspect.id, (item) => {
      if (item.kind === 'status-update' && item.status.state !== 'working') ended.resolve()
    })
    const started = runner.whenStarted(suspect.id)
    runner.letRun(suspect.id)
    enqueue(scheduler, suspect)
    // The scheduler may start later or run other tasks first.
    await Promise.race([started, ended.promise])
    const timer = setTimeout(stop, suspectAloneMs)
    await ended.promise
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

type TaskReference = Pick<UnfinishedTask, 'id' | 'version' | 'owner'>

function enqueue(scheduler: Scheduler, { id, version, owner }: TaskReference): void {
  scheduler.enqueue({ taskId: id, version, owner })
}
