import { hash } from 'node:crypto'
import { timestampOf } from '@parley/wire/model/timestamp'
import { isExternal } from '../registry/admission.ts'
import type { AgentEntry, Load } from '../registry/entry.ts'
import { resourceOf } from '../routing/forwarding/token-forwarding.ts'

/** An entry as the list shows it, in snake_case (spec/gateway-registry.md#list). */
export function entrySummary(entry: AgentEntry, gatewayUrl: string) {
  return {
    slug: entry.slug,
    id: entry.id,
    name: entry.name,
    description: entry.description,
    did: entry.did ?? null,
    url: agentUrl(entry.slug, gatewayUrl),
    status: entry.status,
    verified: entry.verified,
    admitted: entry.admitted,
    origin: entry.origin,
    external: isExternal(entry),
    quarantined: entry.quarantine !== undefined,
    since: entry.since,
    last_seen: entry.lastSeen ?? null,
    ...(entry.left !== undefined && { left: entry.left }),
    skills: entry.skills.map(({ id, name, tags }) => ({ id, name, tags })),
  }
}

/** A difference between the card that was admitted and the one of now. */
function changesOut(entry: AgentEntry) {
  return (entry.cardChanges ?? []).map(({ at, field, before, after }) => ({
    at,
    field,
    before: before ?? null,
    after: after ?? null,
  }))
}

/**
 * Another one whenever who the agent is, what it shows of itself or, while no key is proven, where it is has changed: an
 * operator who has looked at it says by this what was seen.
 */
export function revisionOf({ id, slug, did, keys, verified, url, card, skills }: AgentEntry): string {
  const where = verified ? null : url
  return hash(
    'sha256',
    JSON.stringify([id, slug, did ?? null, keys, verified, where, card, skills]),
    'base64url',
  )
}

/** One entry in full (`GET /registry/agents/{id}`). */
export function entryDetail(entry: AgentEntry, gatewayUrl: string) {
  return {
    ...entrySummary(entry, gatewayUrl),
    registered_at: entry.registeredAt,
    revision: revisionOf(entry),
    keys: entry.keys ?? [],
    token_resource: resourceOf(entry),
    card_changes: changesOut(entry),
    quarantine:
      entry.quarantine === undefined
        ? null
        : {
            since: entry.quarantine.since,
            reason: entry.quarantine.reason,
            by: entry.quarantine.by === undefined ? 'gateway' : 'operator',
            until: entry.quarantine.until === undefined ? null : timestampOf(entry.quarantine.until * 1000),
          },
    lease_until: timestampOf(entry.leaseUntil * 1000),
    load: loadOut(entry.load),
    replicas: (entry.replicas ?? []).map((replica) => ({
      id: replica.id,
      last_seen: replica.lastSeen,
      lease_until: timestampOf(replica.leaseUntil * 1000),
      load: loadOut(replica.load),
    })),
    measurements:
      entry.measurements === undefined
        ? null
        : {
            samples: entry.measurements.samples,
            completed_tasks: entry.measurements.completedTasks ?? 0,
            success_share: entry.measurements.successShare,
            latency_p50_ms: entry.measurements.latencyP50Ms ?? null,
            latency_p95_ms: entry.measurements.latencyP95Ms ?? null,
          },
    skills: entry.skills.map((skill) => skillOut(entry, skill)),
    card: cardOut(entry, gatewayUrl),
  }
}

/** A skill in a list over all agents says whose it is; its documentation is read through the gateway. */
export function skillOut(entry: AgentEntry, skill: AgentEntry['skills'][number]) {
  const documentation = skill['documentation_path']
  return {
    ...skill,
    ...(typeof documentation === 'string' && {
      documentation_path: `/agents/${entry.slug}/${documentation.replace(/^\/+/, '')}`,
    }),
  }
}

/** The agent's card with the address under which clients of the gateway reach it. */
export function cardOut(entry: AgentEntry, gatewayUrl: string) {
  return { ...entry.card, url: agentUrl(entry.slug, gatewayUrl) }
}

export function agentUrl(slug: string, gatewayUrl: string): string {
  return `${gatewayUrl}/agents/${slug}`
}

function loadOut(load: Load) {
  return {
    queue_depth: load.queueDepth ?? null,
    active_tasks: load.activeTasks ?? null,
    latency_p50_ms: load.latencyP50Ms ?? null,
    latency_p95_ms: load.latencyP95Ms ?? null,
    completed: load.completed ?? null,
    failed: load.failed ?? null,
  }
}
