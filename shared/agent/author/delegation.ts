import type { ChildTask, TaskRecord } from '@parley/engine/store/store'
import type { Agents } from './agents.ts'

/** The run of a handler, as calls of other agents use it. */
export interface CallingRun {
  /** The task when the run began. */
  task: TaskRecord
  /** When the time of the task ends, in milliseconds since 1970. */
  deadlineAt: number | undefined
  /** Aborted when the run must stop. */
  signal: AbortSignal
  /** Stores the calls with the task. Rejects when this process no longer runs the task. */
  save: (children: ChildTask[]) => Promise<void>
}

/** The calls of one run. */
export interface RunCalls {
  readonly agents: Agents
  /** All calls of the task, with those of earlier runs. */
  readonly children: ChildTask[]
}

/** Makes the calls of each run. */
export interface Delegation {
  open(run: CallingRun): RunCalls
}
