import { dialectNamed } from '@parley/wire/codecs/dialects'
import { cardAt } from '@parley/wire/codecs/parley/card'
import { entryDetailOut, entrySummaryOut } from '@parley/wire/codecs/parley/registry'
import { withDocumentationBelow } from '@parley/wire/codecs/parley/skills'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { EntrySummary } from '@parley/wire/model/registry'
import type { JsonObject } from '@parley/wire/model/task'
import { timestampOf } from '@parley/wire/model/timestamp'
import { mcpDialect } from '../registration/fetch-mcp-server.ts'
import { isExternal } from '../registry/admission.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { revisionOf } from '../registry/revision.ts'
import { resourceOf } from '../routing/forwarding/caller-token.ts'

/** Returns an entry as it appears in a list (spec/gateway-registry.md#list). */
export function entrySummary(entry: AgentEntry, gatewayUrl: string) {
  return entrySummaryOut(summaryOf(entry, gatewayUrl))
}

export function summaryOf(entry: AgentEntry, gatewayUrl: string): EntrySummary {
  return {
    ...entry,
    did: entry.did ?? null,
    url: agentUrl(entry.slug, gatewayUrl),
    external: isExternal(entry),
    quarantined: entry.quarantine !== undefined,
    lastSeen: entry.lastSeen ?? null,
    skills: entry.skills.map(({ id, name, tags }) => ({ id, name, tags })),
    relay: relaySummaryOf(entry),
  }
}

function relaySummaryOf({ relay, cardSignature, card }: AgentEntry): EntrySummary['relay'] {
  if (relay === undefined) return undefined
  const { dialect, streaming, security } = relay
  return {
    dialect,
    version: dialect === mcpDialect ? revisionIn(card) : dialectNamed(dialect).version,
    streaming,
    security: security.map(({ kind }) => kind),
    cardSignature: cardSignature ?? { verified: false, reason: 'unchecked' },
  }
}

/** Returns the revision of MCP in the entry of a server. */
function revisionIn({ mcp }: JsonObject): string | undefined {
  const revision = isObject(mcp) ? mcp['revision'] : undefined
  return typeof revision === 'string' ? revision : undefined
}

/** Returns one entry in full (`GET /registry/agents/{id}`). */
export function entryDetail(entry: AgentEntry, gatewayUrl: string) {
  return entryDetailOut({
    summary: summaryOf(entry, gatewayUrl),
    registeredAt: entry.registeredAt,
    revision: revisionOf(entry),
    admittedRevision: entry.admittedRevision ?? null,
    admittedAt: entry.admittedAt ?? null,
    keys: entry.keys ?? [],
    tokenResource: resourceOf(entry),
    cardChanges: changesOf(entry),
    quarantine: quarantineOf(entry),
    leaseUntil: timestampOf(entry.leaseUntil * 1000),
    load: entry.load,
    replicas: (entry.replicas ?? []).map((replica) => ({
      ...replica,
      leaseUntil: timestampOf(replica.leaseUntil * 1000),
    })),
    measurements: entry.measurements,
    exampleProbe: entry.exampleProbe,
    skills: entry.skills.map((skill) => skillOut(entry, skill)),
    card: cardOut(entry, gatewayUrl),
  })
}

/** Returns the changes to the card since the agent was admitted. */
function changesOf(entry: AgentEntry) {
  return (entry.cardChanges ?? []).map(({ at, field, before, after }) => ({
    at,
    field,
    before: before ?? null,
    after: after ?? null,
  }))
}

function quarantineOf({ quarantine }: AgentEntry) {
  if (quarantine === undefined) return null
  const { since, reason, by, until } = quarantine
  return {
    since,
    reason,
    by: by === undefined ? 'gateway' : 'operator',
    until: until === undefined ? null : timestampOf(until * 1000),
  }
}

/** Returns a skill with its documentation path at the gateway. */
export function skillOut(entry: AgentEntry, skill: AgentEntry['skills'][number]) {
  return withDocumentationBelow(skill, `/agents/${entry.slug}`)
}

/** Returns the agent's card with its addresses at the gateway. */
export function cardOut(entry: AgentEntry, gatewayUrl: string) {
  return cardAt(entry.card, agentUrl(entry.slug, gatewayUrl))
}

export function agentUrl(slug: string, gatewayUrl: string): string {
  return `${gatewayUrl}/agents/${slug}`
}
