import { isDeepStrictEqual } from 'node:util'
import { ParleyError } from '@parley/wire/errors'
import { timestamp } from '@parley/wire/model/timestamp'
import type { AgentEntry, NewEntryFields } from './entry.ts'
import { revisionOf } from './revision.ts'
import { entryChangedError } from './same-agent.ts'

type Admission = Pick<AgentEntry, 'admitted' | 'admittedBy'>
type Facts = Admission & Pick<AgentEntry, 'url' | 'verified' | 'relay'>

/** The value of `admittedBy` for an agent that was admitted because the registry is open. */
export const byOpenRegistry = 'open'

/**
 * Returns the admission of an agent that registers. Admission by an operator applies immediately. An agent keeps its
 * existing admission at the same address, and at another address if it proved its key both times. The address of a foreign agent
 * is also that of its interface and of the servers that receive its credential.
 */
export function admission(known: Facts | undefined, next: Facts): Admission {
  if (next.admitted && next.admittedBy !== byOpenRegistry) return { admitted: true }
  if (known?.admitted !== true) return { admitted: next.admitted }
  const isSameAddress = known.url === next.url && isDeepStrictEqual(serversOf(known), serversOf(next))
  if (!isSameAddress && !(known.verified && next.verified)) return { admitted: next.admitted }
  return known.admittedBy === undefined
    ? { admitted: true }
    : { admitted: true, admittedBy: known.admittedBy }
}

/** The servers to which calls and credentials of an agent are sent, and how. */
function serversOf({ url, relay }: Facts) {
  const security = (relay?.security ?? []).map(({ scheme: _name, ...scheme }) =>
    scheme.kind === 'oauth2' ? { kind: scheme.kind, tokenUrl: scheme.tokenUrl } : scheme,
  )
  return { origin: URL.parse(relay?.url ?? url)?.origin, security }
}

/** Returns whether an admission survives a restart. An admission by an open registry ends when it closes. */
export function stillAdmitted({ admitted, admittedBy }: Admission, open: boolean): boolean {
  return admitted && (open || admittedBy !== byOpenRegistry)
}

/**
 * Removes an ejection, because a supervised agent's new process starts without it. An operator's quarantine remains.
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

/** Returns the entry of an agent that an operator has removed. Only its policy is kept. */
export function withoutAdmission(entry: AgentEntry): AgentEntry {
  const { quarantine: _, admittedBy: _by, own: _own, admittedAt: _at, admittedRevision: _r, ...rest } = entry
  return { ...rest, admitted: false, left: entry.left ?? timestamp(), status: 'unreachable' }
}

/** Returns whether an operator has made a decision about the agent. If so, its entry is kept when it unregisters. */
export function hasOperatorDecision(
  entry: Pick<AgentEntry, 'admitted' | 'admittedBy' | 'quarantine' | 'policy'>,
): boolean {
  if (entry.policy !== undefined) return true
  return entry.quarantine !== undefined || (entry.admitted && entry.admittedBy !== byOpenRegistry)
}

/** Returns whether the agent was admitted only because the registry is open. Its claims are then not trusted. */
export function isUnvetted({ origin, admittedBy }: Pick<AgentEntry, 'origin' | 'admittedBy'>): boolean {
  return origin === 'registered' && admittedBy === byOpenRegistry
}

/** Number of completed tasks after which an unverified agent is no longer a newcomer. */
const tasksOfEvidence = 20

/** Returns whether the agent is unverified and has completed fewer than 20 tasks for this gateway. */
export function isNewcomer({
  origin,
  verified,
  measurements,
}: Pick<AgentEntry, 'origin' | 'verified' | 'measurements'>): boolean {
  if (origin === 'supervised' || verified) return false
  return (measurements?.completedTasks ?? 0) < tasksOfEvidence
}

/** Number of completed tasks after which the agent's own examples say nothing new about it. */
const tasksOfTrial = 5

/** Returns whether the agent has completed fewer than 5 tasks of callers for this gateway. */
export function isUntried({ measurements }: Pick<AgentEntry, 'measurements'>): boolean {
  return (measurements?.completedTasks ?? 0) < tasksOfTrial
}

/**
 * Returns the id of the client that may introspect tokens and act for other clients as this agent, if there is one. The
 * agent must have proven its key, be admitted and not be quarantined by an operator. An ejected agent is trusted, because
 * it still serves requests for existing tasks.
 */
export function trustedClient(
  entry: Pick<AgentEntry, 'did' | 'owner' | 'left' | 'verified' | 'admitted' | 'quarantine'> | undefined,
): string | undefined {
  if (entry?.did === undefined || entry.owner !== entry.did || entry.left !== undefined) return undefined
  const isTrusted = entry.verified && entry.admitted && entry.quarantine?.by === undefined
  return isTrusted ? entry.did : undefined
}

/**
 * Returns whether the agent may call others for its callers: the gateway supervises it, or it has proven its key and was
 * admitted, and no operator has quarantined it.
 */
export function mayActForCallers(
  entry: Pick<AgentEntry, 'origin' | 'left' | 'verified' | 'admitted' | 'quarantine'>,
): boolean {
  const { origin, left, verified, admitted, quarantine } = entry
  return (
    left === undefined && admitted && (verified || origin === 'supervised') && quarantine?.by === undefined
  )
}

/**
 * Returns whether the gateway calls a third party. This is so unless the agent is supervised, the relay keeps its tasks, or an
 * operator has declared it part of this deployment, which requires a proven key. External agents are not queried for tasks, and
 * they receive exchanged tokens only if their card declares a bearer scheme.
 */
export function isExternal(
  entry: Pick<AgentEntry, 'origin' | 'own' | 'verified' | 'admitted' | 'admittedBy' | 'relay'>,
): boolean {
  if (entry.origin === 'supervised' || entry.relay !== undefined) return false
  return !(entry.own === true && entry.verified && entry.admitted && entry.admittedBy !== byOpenRegistry)
}

/**
 * Returns whether the gateway records the routes of tasks at the agent, because it does not query the agent for others. A
 * relayed agent is queried only for callers with a record: the relay would otherwise open the app of each agent.
 */
export function isRecorded(entry: Parameters<typeof isExternal>[0]): boolean {
  return entry.relay !== undefined || isExternal(entry)
}

/** Options for admission by an operator. */
export interface AdmissionOptions {
  /** Returns whether the entry is still the one that the operator reviewed. */
  isExpected?: (entry: AgentEntry) => boolean
  /** Declares the agent to be part of this deployment, which requires a proven key. */
  own?: boolean
}

/**
 * Returns the fields of an entry that an operator admits.
 * @throws ParleyError Conflict if the entry is not the expected one, or for `own` without a proven key
 */
export function admittedFields(
  entry: AgentEntry,
  by: string,
  { isExpected, own = false }: AdmissionOptions,
): Partial<AgentEntry> {
  if (own && !entry.verified) {
    throw new ParleyError('Conflict', {
      message:
        'Only an agent that has proven its key can be declared as run by this deployment: admit it without "own"',
      data: { reason: 'not_verified' },
    })
  }
  if (isExpected?.(entry) === false) throw entryChangedError()
  return {
    admitted: true,
    admittedBy: by,
    admittedRevision: revisionOf(entry),
    admittedAt: timestamp(),
    own,
    cardChanges: [],
  }
}
