import { ParleyError } from '@parley/wire/errors'
import type { AgentEntry, Load, Replica } from './entry.ts'

/** Of one agent. Each is kept by every gateway and written with the entry. */
export const replicasMax = 64

export function tooManyReplicas(): ParleyError {
  return new ParleyError('Conflict', {
    message: `An agent has at most ${replicasMax} processes`,
    data: { reason: 'too_many_replicas' },
  })
}

/** The entry with this replica, in the place of an earlier life of it: the same id, or the same address. */
export function withReplica(entry: AgentEntry, replica: Replica): AgentEntry {
  const known = entry.replicas ?? []
  const at = known.findIndex(({ id }) => id === replica.id)
  const others = known.filter(({ id, url }) => id !== replica.id && url !== replica.url)
  return at === -1
    ? withReplicas(entry, [...others, replica])
    : withReplicas(entry, others.toSpliced(Math.min(at, others.length), 0, replica))
}

/** The entry with these replicas alone; with none of them it is where it was last. */
export function withReplicas(entry: AgentEntry, replicas: readonly Replica[]): AgentEntry {
  const { replicas: _, ...rest } = entry
  const [first] = replicas
  if (first === undefined) return rest
  return { ...rest, url: first.url, load: loadOf(replicas), replicas: [...replicas] }
}

/** Leases of the processes that run make the lease of the agent. */
export function leaseOf({ leaseUntil, replicas = [] }: AgentEntry): number {
  return replicas.length === 0 ? leaseUntil : Math.max(...replicas.map((replica) => replica.leaseUntil))
}

/** All wait in one line, so that each tells the same length; what they run and ran is each one's own. */
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
