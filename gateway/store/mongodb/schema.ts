import type { Index, Migration } from '@parley/kit/database/mongodb/schema'

const expiredClaims: Index[] = [{ name: 'claims_expired', key: { agent_id: 1, until: 1 } }]

/** Indexes of the gateway's collections, named after the queries that use them. */
const indexes: Record<string, Index[]> = {
  oauth_entries: [
    { name: 'oauth_of_model', key: { agent_id: 1, model: 1 } },
    { name: 'oauth_of_client', key: { agent_id: 1, client_id: 1 }, having: 'client_id' },
    { name: 'oauth_of_grant', key: { agent_id: 1, grant_id: 1 }, having: 'grant_id' },
    { name: 'oauth_of_uid', key: { agent_id: 1, model: 1, uid: 1 }, having: 'uid' },
    { name: 'oauth_of_user_code', key: { agent_id: 1, model: 1, user_code: 1 }, having: 'user_code' },
    { name: 'oauth_expired', key: { agent_id: 1, expires_at: 1 }, having: 'expires_at' },
    { name: 'oauth_of_data_key', key: { agent_id: 1, data_key: 1 } },
  ],
  registry_agents: [
    { name: 'agents_by_slug', key: { agent_id: 1, slug: 1 }, having: 'slug', unique: true },
    { name: 'agents_by_did', key: { agent_id: 1, did: 1 }, having: 'did', unique: true },
    { name: 'agents_changed', key: { agent_id: 1, changed_at: 1 } },
  ],
  routes: [
    { name: 'routes_of_context', key: { agent_id: 1, owner: 1, context: 1 }, having: 'context' },
    { name: 'routes_waiting', key: { agent_id: 1, route_id: 1, agent: 1 }, having: 'waits' },
    { name: 'routes_old', key: { agent_id: 1, kind: 1, at: 1 } },
    { name: 'routes_claims', key: { agent_id: 1, claim_until: 1 }, having: 'claim_until' },
  ],
  route_agents: [
    { name: 'agents_of_owner', key: { agent_id: 1, owner: 1, at: -1 } },
    { name: 'route_agents_old', key: { agent_id: 1, at: 1 } },
  ],
  decisions: [
    { name: 'decisions_old', key: { agent_id: 1, at: 1 } },
    { name: 'decisions_of_holder', key: { agent_id: 1, anonymous: 1, holder: 1, at: 1 } },
    { name: 'decisions_of_task', key: { agent_id: 1, task: 1 }, having: 'task' },
    { name: 'decisions_of_context', key: { agent_id: 1, context: 1 }, having: 'context' },
  ],
  lessons: [
    { name: 'lessons_of_context', key: { agent_id: 1, context: 1 } },
    { name: 'lessons_removed_with', key: { agent_id: 1, removed_with: 1 }, having: 'removed_with' },
    { name: 'lessons_of_agent', key: { agent_id: 1, agent: 1 } },
    { name: 'lessons_old', key: { agent_id: 1, at: 1 } },
    { name: 'lessons_changed', key: { agent_id: 1, changed_at: 1 } },
  ],
  sentence_vectors: [{ name: 'sentence_vectors_old', key: { agent_id: 1, at: 1 } }],
  reference_grants: [{ name: 'grants_expired', key: { agent_id: 1, until: 1 } }],
  introspection_leases: [{ name: 'leases_by_beat', key: { agent_id: 1, beat: 1 } }],
  gateway_audit: [
    { name: 'audit_age', key: { agent_id: 1, at: 1 } },
    { name: 'audit_of_kind', key: { agent_id: 1, kind: 1, at: 1 } },
    { name: 'audit_of_source', key: { agent_id: 1, kind: 1, source: 1, at: 1 } },
  ],
  gateway_history: [
    { name: 'history_age', key: { agent_id: 1, at: 1 } },
    { name: 'history_of_agent', key: { agent_id: 1, agent: 1, at: 1 } },
  ],
  gateway_claims: expiredClaims,
  gateway_signatures: expiredClaims,
}

/** Version 2 encrypts the OAuth records, which version 1 cannot read. The records are migrated when a gateway starts. */
const migrations: readonly Migration[] = [async () => {}, async () => {}]

export const gatewaySchema = { name: 'gateway_store', indexes, migrations }
