import type { AgentEntry } from '../../registry/entry.ts'

/** An agent that has been down for longer than this is not expected back. */
const temporaryMaxMs = 10 * 60_000
/** The longest time that a message waits for an agent. */
export const waitMaxMs = 3000

const retryAfterSeconds = { starting: 2, unreachable: 10 }

type State = Pick<AgentEntry, 'admitted' | 'quarantine' | 'status' | 'since'>

export interface Exclusion {
  rule: string
  /**
   * Whether the exclusion is expected to end soon, as after a restart, an outage or an ejection by outlier detection.
   */
  temporary: boolean
}

/** Why an agent is not a candidate for any task (spec/negotiation.md#excluded-agents). */
export function exclusionOf({ admitted, quarantine, status }: State): Exclusion | undefined {
  if (!admitted) return { rule: 'not admitted', temporary: false }
  if (quarantine !== undefined) return { rule: 'quarantined', temporary: quarantine.by === undefined }
  if (status === 'starting') return { rule: 'being started', temporary: true }
  return status === 'ready' ? undefined : { rule: 'unreachable', temporary: true }
}

/** Why an agent that is expected back is absent. */
export interface Absence {
  rule: string
  /** For `Retry-After`. */
  retrySeconds: number
  /** Whether the agent may be back within `waitMaxMs`. */
  soon: boolean
}

/** Returns undefined if the agent is present or is not expected back. */
export function absenceOf(entry: State, now: number): Absence | undefined {
  const excluded = exclusionOf(entry)
  if (excluded?.temporary !== true) return undefined
  const { rule } = excluded
  const { status, since, quarantine } = entry
  if (status !== 'ready' && now - Date.parse(since) > temporaryMaxMs) return undefined
  if (status === 'starting') return { rule, retrySeconds: retryAfterSeconds.starting, soon: true }
  if (status === 'unreachable') return { rule, retrySeconds: retryAfterSeconds.unreachable, soon: false }
  const leftMs = Math.max(0, (quarantine?.until ?? now) - now)
  return { rule, retrySeconds: 1 + Math.ceil(leftMs / 1000), soon: leftMs < waitMaxMs }
}
