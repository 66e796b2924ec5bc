import type { TaskRecord } from '@parley/engine/store/store'
import type { agentTaskDetail } from '@parley/wire/codecs/answers/operator/tasks'
import type { z } from 'zod'

type Run = z.input<typeof agentTaskDetail>['runs'][number]

/**
 * The starts of handlers with their ends, in order. The event with which a task enters `working` is a start, and the next status
 * is its end. Further starts, after a process was lost or stopped, have no event and are in `restarts`.
 */
export function handlerRuns({
  events,
  restarts = [],
  releasedAt,
}: Pick<TaskRecord, 'events' | 'restarts' | 'releasedAt'>): Run[] {
  const changes: { at: string; state: string }[] = []
  for (const event of events) {
    if (event.kind !== 'status-update') continue
    const { state } = event.status
    // Progress is reported by further events in the same state.
    if (changes.at(-1)?.state !== state) changes.push({ at: event.timestamp, state })
  }
  const runs: Run[] = []
  for (const [index, { at, state }] of changes.entries()) {
    if (state !== 'working') continue
    const end = changes[index + 1]
    const later = restarts.filter((restart) => restart.at > at && (end === undefined || restart.at < end.at))
    const starts = [at, ...later.map((restart) => restart.at)]
    for (const [position, started_at] of starts.entries()) {
      const next = later[position]
      if (next !== undefined) runs.push({ started_at, ended_at: next.at, outcome: next.after })
      else if (end !== undefined) runs.push({ started_at, ended_at: end.at, outcome: end.state })
      else if (releasedAt !== undefined) runs.push({ started_at, ended_at: releasedAt, outcome: 'released' })
      else runs.push({ started_at, ended_at: null, outcome: null })
    }
  }
  return runs
}
