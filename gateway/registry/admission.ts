import { ParleyError } from '@parley/wire/errors'
import type { AgentEntry, NewEntryFields } from './entry.ts'

type Admission = Pick<AgentEntry, 'admitted' | 'admittedBy'>
type Facts = Admission & Pick<AgentEntry, 'url' | 'verified'>

/** `admittedBy` of an agent that was admitted because the registry is open. */
export const byOpenRegistry = 'open'

/**
 * Admission of an agent that registers. Admission by an operator applies immediately. An existing admission is kept at
 * the same address, and at another one if the agent proved its key both times.
 */
export function admission(known: Facts | undefined, next: Facts): Admission {
  if (next.admitted && next.admittedBy !== byOpenRegistry) return { admitted: true }
  const same = known?.url === next.url || (known?.verified === true && next.verified)
  if (known?.admitted !== true || !same) return { admitted: next.admitted }
  return known.admittedBy === undefined
    ? { admitted: true }
    : { admitted: true, admittedBy: known.admittedBy }
}

/** Whether an admission survives a restart: that of an open registry ends when the registry is closed. */
export function stillAdmitted({ admitted, admittedBy }: Admission, open: boolean): boolean {
  return admitted && (open || admittedBy !== byOpenRegistry)
}

/**
 * A new process of a supervised agent starts without the ejection of its predecessor. An operator's quarantine remains.
 */
export function withoutEjection(
  known: NewEntryFields & Partial<AgentEntry>,
  { origin }: Pick<AgentEntry, 'origin'>,
): NewEntryFields & Partial<AgentEntry> {
  if (origin !== 'supervised' || known.quarantine === undefined || known.quarantine.by !== undefined)
    return known
  const { quarantine: _, ...rest } = known
  return rest
}

/** Whether an operator decided about the agent. Such an entry is kept when the agent leaves. */
export function hasOperatorDecision(
  entry: Pick<AgentEntry, 'admitted' | 'admittedBy' | 'quarantine'>,
): boolean {
  return entry.quarantine !== undefined || (entry.admitted && entry.admittedBy !== byOpenRegistry)
}

/** Whether the agent was admitted only because the registry is open. Its claims are not trusted. */
export function isUnvetted({ origin, admittedBy }: Pick<AgentEntry, 'origin' | 'admittedBy'>): boolean {
  return origin === 'registered' && admittedBy === byOpenRegistry
}

/** Number of completed tasks from which an unverified agent no longer counts as new. */
const tasksOfEvidence = 20

/** Whether the agent is unverified and this gateway has seen fewer than 20 of its tasks completed. */
export function isNewcomer({
  origin,
  verified,
  measurements,
}: Pick<AgentEntry, 'origin' | 'verified' | 'measurements'>): boolean {
  if (origin === 'supervised' || verified) return false
  return (measurements?.completedTasks ?? 0) < tasksOfEvidence
}

/**
 * Whether the agent may introspect tokens: its key is proven, it is admitted and not quarantined by an operator. An
 * ejected agent may, because it still serves requests for existing tasks.
 */
export function checksTokens(entry: Pick<AgentEntry, 'verified' | 'admitted' | 'quarantine'>): boolean {
  return entry.verified && entry.admitted && entry.quarantine?.by === undefined
}

/**
 * Whether a third party runs the agent: it is neither supervised nor declared by an operator as part of this
 * deployment, which requires a proven key. Callers' tokens are forwarded to external agents only if they name the
 * agent.
 */
export function isExternal(
  entry: Pick<AgentEntry, 'origin' | 'own' | 'verified' | 'admitted' | 'admittedBy'>,
): boolean {
  if (entry.origin === 'supervised') return false
  return !(entry.own === true && entry.verified && entry.admitted && entry.admittedBy !== byOpenRegistry)
}

/** Options of an operator's admission. */
export interface AdmissionOptions {
  /** Whether the entry is still the one that the operator reviewed. */
  isExpected?: (entry: AgentEntry) => boolean
  /** Declares the agent as part of this deployment. Requires a proven key. */
  own?: boolean
}

/**
 * Whether the entry may be admitted.
 * @throws ParleyError Conflict for `own` without a proven key
 */
export function checkAdmission(entry: AgentEntry, { isExpected, own = false }: AdmissionOptions): boolean {
  if (own && !entry.verified) {
    throw new ParleyError('Conflict', {
      message:
        'Only an agent that has proven its key can be declared as run by this deployment: admit it without "own"',
      data: { reason: 'not_verified' },
    })
  }
  return isExpected?.(entry) ?? true
}
