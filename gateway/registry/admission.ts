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

/** A person decided something about it, which must not be lost when it goes and comes again. */
export function isDecided(entry: Pick<AgentEntry, 'admitted' | 'admittedBy' | 'quarantine'>): boolean {
  return entry.quarantine !== undefined || (entry.admitted && entry.admittedBy !== byOpenRegistry)
}

/** The open registry let it in: nobody has looked at it, and nothing that it claims binds others. */
export function isStranger({ origin, admittedBy }: Pick<AgentEntry, 'origin' | 'admittedBy'>): boolean {
  return origin === 'registered' && admittedBy === byOpenRegistry
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
