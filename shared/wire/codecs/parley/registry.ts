import { z } from 'zod'
import type { EntryDetail, EntrySummary, Heartbeat, LoadReport, RelaySummary } from '../../model/registry.ts'
import { uuid } from './message.ts'
import { wireObject } from './spelling.ts'

/** Writes an agent for the list of `GET /registry/agents` (spec/gateway-registry.md#list). */
export function entrySummaryOut(entry: EntrySummary) {
  return {
    slug: entry.slug,
    id: entry.id,
    name: entry.name,
    description: entry.description,
    did: entry.did,
    url: entry.url,
    status: entry.status,
    verified: entry.verified,
    admitted: entry.admitted,
    origin: entry.origin,
    external: entry.external,
    quarantined: entry.quarantined,
    since: entry.since,
    last_seen: entry.lastSeen,
    left: entry.left,
    skills: entry.skills,
    ...(entry.relay !== undefined && { relay: relayOut(entry.relay) }),
  }
}

function relayOut({ dialect, version, streaming, security, cardSignature }: RelaySummary) {
  return { dialect, version: version ?? null, streaming, security, card_signature: cardSignature }
}

/** Writes all details of an agent, the answer to `GET /registry/agents/{id}`. */
export function entryDetailOut(entry: EntryDetail) {
  const { measurements } = entry
  return {
    ...entrySummaryOut(entry.summary),
    registered_at: entry.registeredAt,
    revision: entry.revision,
    admitted_revision: entry.admittedRevision,
    admitted_at: entry.admittedAt,
    keys: entry.keys,
    token_resource: entry.tokenResource,
    card_changes: entry.cardChanges,
    quarantine: entry.quarantine,
    lease_until: entry.leaseUntil,
    load: loadOut(entry.load),
    replicas: entry.replicas.map(({ id, lastSeen, leaseUntil, load }) => ({
      id,
      last_seen: lastSeen,
      lease_until: leaseUntil,
      load: loadOut(load),
    })),
    measurements:
      measurements === undefined
        ? null
        : {
            samples: measurements.samples,
            completed_tasks: measurements.completedTasks ?? 0,
            success_share: measurements.successShare,
            latency_p50_ms: measurements.latencyP50Ms ?? null,
            latency_p95_ms: measurements.latencyP95Ms ?? null,
          },
    ...(entry.exampleProbe !== undefined && { example_probe: exampleProbeOut(entry.exampleProbe) }),
    skills: entry.skills,
    card: entry.card,
  }
}

function exampleProbeOut(probe: NonNullable<EntryDetail['exampleProbe']>) {
  return {
    revision: probe.revision,
    at: probe.at,
    completed: probe.completed,
    failed: probe.failed,
    needed_input: probe.inputRequired,
    needed_auth: probe.authRequired,
    needed_payment: probe.paymentRequired,
    timed_out: probe.timedOut,
  }
}

function loadOut(load: LoadReport) {
  return {
    queue_depth: load.queueDepth ?? null,
    active_tasks: load.activeTasks ?? null,
    latency_p50_ms: load.latencyP50Ms ?? null,
    latency_p95_ms: load.latencyP95Ms ?? null,
    completed: load.completed ?? null,
    failed: load.failed ?? null,
  }
}

/** @param agents entries with the gateway's proof */
export function entryListOut(agents: readonly object[], total: number, nextCursor: string | undefined) {
  return { agents, total, next_cursor: nextCursor ?? null }
}

/** The answer to a heartbeat. */
export function renewalOut(entry: EntrySummary, leaseSeconds: number) {
  return { ...entrySummaryOut(entry), lease_seconds: leaseSeconds }
}

/** The answer to `admit`, which lists agents that look like the admitted one. */
export function lookAlikesOut(lookAlikes: readonly object[]) {
  return lookAlikes.length > 0 ? { look_alikes: lookAlikes } : {}
}

/** The body of `POST /registry/agents`. */
export const registrationIn = z
  .object({
    url: z.string().min(1),
    replica_id: uuid.optional(),
    protocol: z.enum(['a2a', 'mcp']).default('a2a'),
    /** For MCP servers, which often have general names. */
    name: z.string().trim().min(1).max(128).optional(),
  })
  .transform(({ replica_id: replicaId, protocol, ...rest }) => ({
    ...rest,
    replicaId,
    isMcp: protocol === 'mcp',
  }))

/** The query of `DELETE /registry/agents/{id}`. */
export const leavingQueryIn = z.object({ replica_id: uuid.optional() })
export const leavingIn = leavingQueryIn.transform(({ replica_id: replicaId }) => ({ replicaId }))

export function registrationOut(url: string, replicaId: string | undefined) {
  return { url, ...replicaOut(replicaId) }
}

/** The query string of `DELETE /registry/agents/{id}`, including the question mark. */
export function leavingQuery(replicaId: string | undefined): string {
  return replicaId === undefined ? '' : `?replica_id=${replicaId}`
}

const count = z.int().min(0).max(1_000_000_000).optional()
const milliseconds = z.number().min(0).max(1_000_000_000).optional()

/** The body of `PUT /registry/agents/{id}/heartbeat`. */
export const heartbeatIn = wireObject({
  replicaId: uuid.optional(),
  queueDepth: count,
  activeTasks: count,
  latencyP50Ms: milliseconds,
  latencyP95Ms: milliseconds,
  completed: count,
  failed: count,
  outcomes: z
    .array(
      wireObject({
        taskId: uuid,
        state: z.enum(['completed', 'failed']),
        rating: z.int().min(1).max(5).optional(),
      }),
    )
    .max(1000)
    .optional(),
})

export function heartbeatOut({ replicaId, outcomes, ...load }: Heartbeat) {
  return {
    queue_depth: load.queueDepth,
    active_tasks: load.activeTasks,
    completed: load.completed,
    failed: load.failed,
    latency_p50_ms: load.latencyP50Ms,
    latency_p95_ms: load.latencyP95Ms,
    outcomes: outcomes?.map(({ taskId, state, rating }) => ({ task_id: taskId, state, rating })),
    ...replicaOut(replicaId),
  }
}

function replicaOut(replicaId: string | undefined) {
  return replicaId === undefined ? {} : { replica_id: replicaId }
}

const text = z.string().optional().catch(undefined)
const flag = z.boolean().optional().catch(undefined)
const listOf = <T extends z.ZodType>(item: T) => z.array(item).optional().catch(undefined)

const entry = wireObject({
  slug: text,
  name: text,
  did: text,
  url: text,
  status: text,
  origin: text,
  revision: text,
  tokenResource: text,
  verified: flag,
  admitted: flag,
  external: flag,
  quarantined: flag,
  quarantine: z.object({ reason: text }).nullish().catch(undefined),
  relay: wireObject({
    dialect: text,
    version: text,
    streaming: flag,
    security: listOf(z.string()),
    cardSignature: wireObject({ verified: flag, kid: text, reason: text }).optional().catch(undefined),
  })
    .optional()
    .catch(undefined),
  skills: listOf(z.union([z.string(), z.object({ id: text })])),
  cardChanges: listOf(z.object({ field: text })),
  lookAlikes: listOf(z.object({ agent: text, because: text })),
})
const list = wireObject({
  agents: z.array(z.unknown()).catch([]),
  nextCursor: text,
})

export type ReadEntry = z.output<typeof entry>

/** Reads a registry entry, for clients. Fields of any other type count as absent. */
export function readEntry(json: unknown): ReadEntry {
  return entry.safeParse(json).data ?? {}
}

export function readEntryList(json: unknown): z.output<typeof list> {
  return list.safeParse(json).data ?? { agents: [] }
}
