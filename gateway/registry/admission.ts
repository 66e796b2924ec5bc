import { ParleyError } from '@parley/wire/errors'
import type { AgentEntry } from './entry.ts'

type Admission = Pick<AgentEntry, 'admitted' | 'admittedBy'>
type Facts = Admission & Pick<AgentEntry, 'url' | 'verified'>

/** How an agent was admitted that nobody looked at: the registry was open. */
export const byOpenRegistry = 'open'

/**
 * Whether an agent that registers may be given work. An operator's word counts at once; who was admitted before stays so
 * where it is, and elsewhere when it proved its key both times.
 */
export function admission(known: Facts | undefined, next: Facts): Admission {
  if (next.admitted && next.admittedBy !== byOpenRegistry) return { admitted: true }
  const same = known?.url === next.url || (known?.verified === true && next.verified)
  if (known?.admitted !== true || !same) return { admitted: next.admitted }
  return known.admittedBy === undefined
    ? { admitted: true }
    : { admitted: true, admittedBy: known.admittedBy }
}

/** What is left of an admission at a start: that of an open registry ends when the registry is closed. */
export function stillAdmitted({ admitted, admittedBy }: Admission, open: boolean): boolean {
  return admitted && (open || admittedBy !== byOpenRegistry)
}

/** A new process of a supervised agent starts without the ejection of the one before it; what an operator decided stays. */
export function withoutEjection<T extends Partial<Pick<AgentEntry, 'quarantine'>>>(
  known: T,
  { origin }: Pick<AgentEntry, 'origin'>,
): T {
  if (origin !== 'supervised' || known.quarantine === undefined || known.quarantine.by !== undefined)
    return known
  const { quarantine: _, ...rest } = known
  return rest as T
}

/** A person decided something about it, which must not be lost when it goes and comes again. */
export function isDecided(entry: Pick<AgentEntry, 'admitted' | 'admittedBy' | 'quarantine'>): boolean {
  return entry.quarantine !== undefined || (entry.admitted && entry.admittedBy !== byOpenRegistry)
}

/** The open registry let it in: nobody has looked at it, and nothing that it claims binds others. */
export function isUnvetted({ origin, admittedBy }: Pick<AgentEntry, 'origin' | 'admittedBy'>): boolean {
  return origin === 'registered' && admittedBy === byOpenRegistry
}

/** Completed tasks from which on an unverified agent has evidence of its own. */
const tasksOfEvidence = 20

/** Unverified, and the gateway has seen fewer than 20 tasks of it completed: nothing but its own words speaks for it. */
export function isNewcomer({
  origin,
  verified,
  measurements,
}: Pick<AgentEntry, 'origin' | 'verified' | 'measurements'>): boolean {
  if (origin === 'supervised' || verified) return false
  return (measurements?.completedTasks ?? 0) < tasksOfEvidence
}

/**
 * It proved its key, was admitted, and no operator set it aside. One that failed again and again gets no new work, but its
 * callers still come for their tasks.
 */
export function checksTokens(entry: Pick<AgentEntry, 'verified' | 'admitted' | 'quarantine'>): boolean {
  return entry.verified && entry.admitted && entry.quarantine?.by === undefined
}

/**
 * Run by a third party: neither started by the supervisor nor declared by an operator to belong to this deployment, which
 * needs a proven key. Callers' tokens are not forwarded to external agents unless they name the agent.
 */
export function isExternal(
  entry: Pick<AgentEntry, 'origin' | 'own' | 'verified' | 'admitted' | 'admittedBy'>,
): boolean {
  if (entry.origin === 'supervised') return false
  return !(entry.own === true && entry.verified && entry.admitted && entry.admittedBy !== byOpenRegistry)
}

/** As what an operator admits an agent. */
export interface Admitting {
  /** Whether it is still what the operator looked at. */
  isSeen?: (entry: AgentEntry) => boolean
  /** This deployment runs it, which only an agent with a proven key can show. */
  own?: boolean
}

/** @throws ParleyError Conflict for `own` without a proven key */
export function isAdmittedAs(entry: AgentEntry, { isSeen, own = false }: Admitting): boolean {
  if (own && !entry.verified) {
    throw new ParleyError('Conflict', {
      message:
        'Only an agent that has proven its key can be declared as run by this deployment: admit it without "own"',
      data: { reason: 'not_verified' },
    })
  }
  return isSeen?.(entry) ?? true
}
