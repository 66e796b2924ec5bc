import { collectionKind, type Kind, type Plan } from '@parley/engine/migration/kind'
import type { Part } from '@parley/engine/migration/migrate'
import { hashOf, keyText } from '@parley/kit/database/keys'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { z } from 'zod'
import { keyRingCollection } from './keys/key-ring.ts'
import { oauthCollection } from './oauth/oauth-store.ts'
import { historyCollection } from './records/agent-history.ts'
import { auditCollection } from './records/audit-entries.ts'
import type { AgentEntry } from './registry/entry.ts'
import { registryDocument } from './registry/store/mongodb/registry.ts'
import { decisionDocument } from './routing/store/mongodb/decisions.ts'
import { type RouteAgentDocument, routeDocument } from './routing/store/mongodb/routing.ts'
import { sentenceVectorDocument } from './routing/store/mongodb/sentence-vectors.ts'
import type { TrainingExampleDocument } from './routing/store/mongodb/training-examples.ts'
import { decisionColumns, decisionOf } from './routing/store/sqlite/decisions.ts'
import { routeColumns, routeOf } from './routing/store/sqlite/routing.ts'
import { claimCollection } from './store/claims.ts'
import { gatewayScope } from './store/mongodb/database.ts'
import { gatewaySchema } from './store/mongodb/schema.ts'
import { gatewayMigrations } from './store/sqlite/schema.ts'

const scope = { agent_id: gatewayScope }

/** Returns the part for the gateway's own database, with the registry, OAuth server and routing. */
export function gatewayPart(file: string): Part {
  return {
    name: 'gateway',
    scope: gatewayScope,
    file,
    migrations: gatewayMigrations,
    schema: gatewaySchema,
    plan: () => plan,
  }
}

const registryRow = z.object({ entry: z.string() })

const registry: Kind = {
  name: 'registered agents',
  table: 'registry_agents',
  select: 'SELECT id, entry FROM registry_agents',
  key: { id: 'id' },
  documents: (row) => {
    const entry: AgentEntry = JSON.parse(registryRow.parse(row).entry)
    return { registry_agents: [registryDocument(entry)] }
  },
}

const oauth = collectionKind(
  { title: 'OAuth entries', scope: gatewayScope, declaration: oauthCollection },
  ({ model = '', id = '', ...row }) => ({ ...row, model, id }),
)

const keyRing = collectionKind(
  { title: 'encrypted data keys', scope: gatewayScope, declaration: keyRingCollection },
  ({ name = '', body }) => ({ name, body }),
)

const routes: Kind = {
  name: 'routes',
  table: 'routes',
  select: `SELECT ${routeColumns} FROM routes`,
  key: { owner: 'owner', kind: 'kind', id: 'id' },
  documents: (row) => ({ routes: [routeDocument(routeOf(row))] }),
}

const routeAgentRow = z.object({ owner: z.string(), agent: z.string(), at: z.number() })

const routeAgents: Kind = {
  name: 'agents of callers',
  table: 'route_agents',
  select: 'SELECT owner, agent, at FROM route_agents',
  key: { owner: 'owner', agent: 'agent' },
  documents: (row) => {
    const { owner, agent, at } = routeAgentRow.parse(row)
    const _id = `${gatewayScope}/${hashOf(owner, agent)}`
    const document: RouteAgentDocument = { _id, ...scope, owner: keyText(owner), agent: keyText(agent), at }
    return { route_agents: [document] }
  },
}

const decisions: Kind = {
  name: 'decisions',
  table: 'decisions',
  select: `SELECT ${decisionColumns} FROM decisions`,
  key: { id: 'id' },
  documents: (row) => ({ decisions: [decisionDocument(decisionOf(row))] }),
}

const lessonRow = z.object({ context: z.string(), agent: z.string(), at: z.number(), body: z.string() })

const lessons: Kind = {
  name: 'lessons',
  table: 'lessons',
  select: 'SELECT context, agent, at, body FROM lessons',
  key: { context: 'context', agent: 'agent' },
  documents: (row) => {
    const { context, agent, at, body } = lessonRow.parse(row)
    const lesson: TrainingExample = JSON.parse(body)
    const _id = `${gatewayScope}/${hashOf(context, agent)}`
    const document: TrainingExampleDocument = {
      _id,
      ...scope,
      context: keyText(context),
      agent: keyText(lesson.agent),
      ...(lesson.removedWith !== undefined && { removed_with: keyText(lesson.removedWith) }),
      at,
      body: JSON.stringify(lesson),
      stamp: 'migrated',
      changed_at: new Date(0),
    }
    return { lessons: [document] }
  },
}

const sentenceVectorRow = z.object({ key: z.string(), at: z.number(), vector: z.instanceof(Uint8Array) })

const sentenceVectors: Kind = {
  name: 'sentence vectors',
  table: 'sentence_vectors',
  select: 'SELECT key, at, vector FROM sentence_vectors',
  key: { key: 'key' },
  documents: (row) => ({ sentence_vectors: [sentenceVectorDocument(sentenceVectorRow.parse(row))] }),
}

const cursorKeyRow = z.object({ key: z.instanceof(Uint8Array) })

const cursorKey: Kind = {
  name: 'cursor key',
  table: 'routing_key',
  select: 'SELECT key, 1 AS only FROM routing_key',
  key: { only: '1' },
  documents: (row) => {
    const { key } = cursorKeyRow.parse(row)
    return { gateway_settings: [{ _id: `${gatewayScope}/cursor_key`, ...scope, key: Buffer.from(key) }] }
  },
}

const signatures = collectionKind(
  {
    title: 'claimed signed requests',
    scope: gatewayScope,
    declaration: claimCollection('gateway_signatures'),
  },
  ({ name = '', holder = '', until }) => ({ name, holder, until }),
)

const audit = collectionKind(
  { title: 'entries of the audit log', scope: gatewayScope, declaration: auditCollection },
  ({ id = '', kind = '', source = '', at, body }) => ({ id, kind, source, at, body }),
)

const history = collectionKind(
  { title: 'changes of agents', scope: gatewayScope, declaration: historyCollection },
  ({ id = '', agent = '', at, body }) => ({ id, agent, at, body }),
)

const plan: Plan = {
  kinds: [
    registry,
    keyRing,
    oauth,
    routes,
    routeAgents,
    decisions,
    lessons,
    sentenceVectors,
    signatures,
    cursorKey,
    audit,
    history,
  ],
  collections: [
    'registry_agents',
    'gateway_keys',
    'oauth_entries',
    'routes',
    'route_agents',
    'decisions',
    'lessons',
    'sentence_vectors',
    'gateway_signatures',
    'gateway_settings',
    'gateway_audit',
    'gateway_history',
  ],
  // A gateway that has already been started on the target has created its own agents, clients and keys there.
  work: ['registry_agents', 'oauth_entries', 'routes'],
}
