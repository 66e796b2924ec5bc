import { timestamp } from '@parley/wire/model/timestamp'
import type { AgentEntry } from './entry.ts'
import { withReplicas } from './replicas.ts'

/** The lease of the agent: the latest lease of its processes. */
export function leaseOf({ leaseUntil, replicas = [] }: AgentEntry): number {
  return replicas.length === 0 ? leaseUntil : Math.max(...replicas.map((replica) => replica.leaseUntil))
}

/** The entry after a sign of life: ready, with a new lease. */
export function withRenewedLease(entry: AgentEntry, leaseUntil: number): AgentEntry {
  const since = entry.status === 'ready' ? entry.since : timestamp()
  return { ...entry, status: 'ready', since, lastSeen: timestamp(), leaseUntil }
}

/** The entry of a supervised agent without processes. If it will be started again, it has one lease to do so. */
export function withoutProcesses(entry: AgentEntry, restartLeaseUntil: number | undefined): AgentEntry {
  const status = restartLeaseUntil === undefined ? 'unreachable' : 'starting'
  const since = entry.status === status ? entry.since : timestamp()
  return { ...withReplicas(entry, []), status, since, leaseUntil: restartLeaseUntil ?? entry.leaseUntil }
}
