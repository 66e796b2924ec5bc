import { ParleyError } from '@parley/wire/errors'
import { timestamp } from '@parley/wire/model/timestamp'
import type { AgentEntry, Load, Replica } from './entry.ts'

/** Maximum number of replicas per agent. Every gateway holds them all in memory and writes them with the entry. */
const replicasMax = 64

function tooManyReplicasError(): ParleyError {
  return new ParleyError('Conflict', {
    message: `An agent has at most ${replicasMax} processes`,
    data: { reason: 'too_many_replicas' },
  })
}

/** Adds the replica, which replaces any earlier process with the same id or address. */
function withReplica(entry: AgentEntry, replica: Replica): AgentEntry {
  const known = entry.replicas ?? []
  const at = known.findIndex(({ id }) => id === replica.id)
  const others = known.filter(({ id, url }) => id !== replica.id && url !== replica.url)
  return at === -1
    ? withReplicas(entry, [...others, replica])
    : withReplicas(entry, others.toSpliced(Math.min(at, others.length), 0, replica))
}

/**
 * Adds a process to the agent if the process has an id and has proved possession of the key. Otherwise it replaces all
 * processes.
 * @param entry has the lease of the process
 * @param isFresh whether a process with this lease still counts
 * @throws ParleyError Conflict if the agent has too many processes
 */
export function withProcess(
  entry: AgentEntry,
  { url, verified, replicaId: id }: Pick<AgentEntry, 'url' | 'verified'> & { replicaId: string | undefined },
  isFresh: (leaseUntil: number) => boolean,
): AgentEntry {
  if (id === undefined || !verified) return { ...withReplicas(entry, []), url }
  const others = (entry.replicas ?? []).filter((one) => isFresh(one.leaseUntil))
  if (others.filter((one) => one.id !== id && one.url !== url).length >= replicasMax)
    throw tooManyReplicasError()
  return withReplica(withReplicas(entry, others), {
    id,
    url,
    load: {},
    lastSeen: timestamp(),
    leaseUntil: entry.leaseUntil,
  })
}

/**
 * Updates the load of the agent or of one of its processes.
 * @throws ParleyError NotFound for an unknown process
 */
export function withLoad(
  entry: AgentEntry,
  load: Load,
  replicaId: string | undefined,
  leaseUntil: number,
): { entry: AgentEntry; before: Load; now: Load } {
  if (replicaId === undefined) {
    const now = { ...entry.load, ...load }
    return { entry: { ...entry, load: now }, before: entry.load, now }
  }
  const known = entry.replicas?.find((one) => one.id === replicaId)
  if (known === undefined) throw new ParleyError('NotFound', { data: { reason: 'replica' } })
  const now = { ...known.load, ...load }
  const replica = { ...known, load: now, lastSeen: timestamp(), leaseUntil }
  return { entry: withReplica(entry, replica), before: known.load, now }
}

/** Sets the replicas. If there are none, the entry keeps its last address. */
export function withReplicas(entry: AgentEntry, replicas: readonly Replica[]): AgentEntry {
  const { replicas: _, ...rest } = entry
  const [first] = replicas
  if (first === undefined) return rest
  return { ...rest, url: first.url, load: loadOf(replicas), replicas: [...replicas] }
}

export function hasOtherReplica({ replicas = [] }: AgentEntry, replicaId: string | undefined): boolean {
  return replicas.some(({ id }) => id !== replicaId)
}

/** Combines the loads. All processes share a queue, so its longest reported length counts and tasks are summed. */
function loadOf(replicas: readonly Replica[]): Load {
  const loads = replicas.map(({ load }) => load)
  const all = (name: keyof Load) => loads.flatMap((load) => load[name] ?? [])
  const largest = (name: keyof Load) => figure(name, all(name), (values) => Math.max(...values))
  const sum = (name: keyof Load) => figure(name, all(name), (values) => values.reduce((a, b) => a + b, 0))
  const mean = (name: keyof Load) =>
    figure(name, all(name), (values) => values.reduce((a, b) => a + b, 0) / values.length)
  return {
    ...largest('queueDepth'),
    ...sum('activeTasks'),
    ...mean('latencyP50Ms'),
    ...largest('latencyP95Ms'),
    ...sum('completed'),
    ...sum('failed'),
  }
}

function figure(name: keyof Load, values: number[], make: (values: number[]) => number): Load {
  return values.length === 0 ? {} : { [name]: make(values) }
}

/** Returns the agent's lease, which is the latest lease of its processes. */
export function leaseOf({ leaseUntil, replicas = [] }: AgentEntry): number {
  return replicas.length === 0 ? leaseUntil : Math.max(...replicas.map((replica) => replica.leaseUntil))
}

/** Returns the entry after a heartbeat or successful probe: it is ready and has a new lease. */
export function withRenewedLease(entry: AgentEntry, leaseUntil: number): AgentEntry {
  const since = entry.status === 'ready' ? entry.since : timestamp()
  return { ...entry, status: 'ready', since, lastSeen: timestamp(), leaseUntil }
}

/** Returns the entry without processes. An agent that is restarted has one lease to become ready. */
export function withoutProcesses(entry: AgentEntry, restartLeaseUntil: number | undefined): AgentEntry {
  const status = restartLeaseUntil === undefined ? 'unreachable' : 'starting'
  const since = entry.status === status ? entry.since : timestamp()
  return { ...withReplicas(entry, []), status, since, leaseUntil: restartLeaseUntil ?? entry.leaseUntil }
}
