import type { Log } from '@parley/kit/process/log'
import type { EventBus } from '../events/event-bus.ts'
import type { Scheduler } from '../queue/scheduler.ts'
import type { TaskRecord, UnfinishedTask } from '../store/store.ts'
import { failed } from './agent-message.ts'
import type { TaskEngine } from './engine.ts'

/** The runner, as recovery needs it. */
interface SuspectRunner {
  /** Name of this process in leases. */
  readonly holder: string
  /** These tasks wait until `letRun`. */
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
  /** Aborts when the agent stops: suspects that were not started by then stay for the next start. */
  signal: AbortSignal
  /** How long one suspect runs alone, from its start, before the next may start. Default 3 s. */
  suspectAloneMs?: number
}

/**
 * Takes up what an earlier process left behind. Tasks that ran when it died may be what killed it: they run one after
 * the other, fewest starts first, so that one of them cannot use up the starts of its neighbours.
 */
export async function recover(parts: RecoveryParts): Promise<void> {
  const { engine, scheduler, runner, agent, log } = parts
  const unfinished = await engine.store.listUnfinished(Date.now(), runner.holder)
  if (unfinished.length === 0) return
  const suspects: TaskRecord[] = []
  for (const task of unfinished) {
    // One with a lease may have run, though its `working` was not committed yet; `fail` commits that first, and what
    // was released in good order ran as well.
    const mayHaveRun = agent.onRestart === 'run' ? task.leased : task.state === 'working'
    const record = mayHaveRun ? await engine.store.loadTask(task.id) : undefined
    if (record === undefined) enqueue(scheduler, task)
    else if (agent.onRestart === 'run') suspects.push(record)
    else await engine.change(record, (now) => failed(now, 'The agent restarted while this task ran.'))
  }
  log.info(
    { tasks: unfinished.length, suspects: suspects.length },
    'taking up what an earlier process left behind',
  )
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
    const over = Promise.withResolvers<void>()
    const stop = () => over.resolve()
    signal.addEventListener('abort', stop, { once: true })
    using _end = bus.subscribe(suspect.id, (item) => {
      if (item.kind === 'status-update' && item.status.state !== 'working') over.resolve()
    })
    const begun = runner.whenStarted(suspect.id)
    runner.letRun(suspect.id)
    enqueue(scheduler, suspect)
    // The scheduler may start much later, or have others to run first.
    await Promise.race([begun, over.promise])
    const timer = setTimeout(stop, suspectAloneMs)
    await over.promise
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

type Named = Pick<UnfinishedTask, 'id' | 'version' | 'owner'>

function enqueue(scheduler: Scheduler, { id, version, owner }: Named): void {
  scheduler.enqueue({ taskId: id, version, owner })
}
