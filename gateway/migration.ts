import { collectionKind, type Kind, type Plan } from '@parley/engine/migration/kind'
import type { Part } from '@parley/engine/migration/migrate'
import { hashOf, keyText } from '@parley/kit/database/keys'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { oauthCollection } from './oauth/oauth-store.ts'
import type { AgentEntry } from './registry/entry.ts'
import { registryDocument } from './registry/store/mongodb/registry.ts'
import { decisionDocument, type RouteAgentDocument, routeDocument } from './routing/store/mongodb/routing.ts'
import type { TrainingExampleDocument } from './routing/store/mongodb/training-examples.ts'
import type { DecisionRecord } from './routing/store/routing-store.ts'
import { routeColumns, routeOf } from './routing/store/sqlite/routing.ts'
import { claimCollection } from './store/claims.ts'
import { gatewayScope } from './store/mongodb/database.ts'
import { gatewaySchema } from './store/mongodb/schema.ts'
import { gatewayMigrations } from './store/sqlite/schema.ts'

const scope = { agent_id: gatewayScope }

/** The gateway's own database: registry, OAuth server, routing. */
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

const registry: Kind = {
  name: 'registered agents',
  table: 'registry_agents',
  select: 'SELECT id, entry FROM registry_agents',
  key: { id: 'id' },
  documents: ({ entry }) => ({
    registry_agents: [registryDocument(JSON.parse(entry as string) as AgentEntry)],
  }),
}

const oauth = collectionKind(
  { title: 'OAuth entries', scope: gatewayScope, declaration: oauthCollection },
  ({ model = '', id = '', ...row }) => ({ ...row, model, id }),
)

const routes: Kind = {
  name: 'routes',
  table: 'routes',
  select: `SELECT ${routeColumns} FROM routes`,
  key: { owner: 'owner', kind: 'kind', id: 'id' },
  documents: (row) => ({ routes: [routeDocument(routeOf(row))] }),
}

const routeAgents: Kind = {
  name: 'agents of callers',
  table: 'route_agents',
  select: 'SELECT owner, agent, at FROM route_agents',
  key: { owner: 'owner', agent: 'agent' },
  documents: (row) => {
    const { owner = '', agent = '' } = row as Record<string, string>
    const _id = `${gatewayScope}/${hashOf(owner, agent)}`
    const at = row['at'] as number
    const document: RouteAgentDocument = { _id, ...scope, owner: keyText(owner), agent: keyText(agent), at }
    return { route_agents: [document] }
  },
}

const decisions: Kind = {
  name: 'decisions',
  table: 'decisions',
  select: 'SELECT id, owner, holder, at, body FROM decisions',
  key: { id: 'id' },
  documents: ({ id, owner, holder, at, body }) => {
    const ownership = owner !== null ? { owner } : holder !== '' && { holder }
    const record = { id, at, body: JSON.parse(body as string) as unknown, ...ownership }
    return { decisions: [decisionDocument(record as DecisionRecord)] }
  },
}

const lessons: Kind = {
  name: 'lessons',
  table: 'lessons',
  select: 'SELECT context, agent, at, body FROM lessons',
  key: { context: 'context', agent: 'agent' },
  documents: ({ context, agent, at, body }) => {
    const lesson = JSON.parse(body as string) as TrainingExample
    const _id = `${gatewayScope}/${hashOf(context as string, agent as string)}`
    const document: TrainingExampleDocument = {
      _id,
      ...scope,
      context: keyText(context as string),
      at: at as number,
      body: JSON.stringify(lesson),
      stamp: 'migrated',
      changed_at: new Date(0),
    }
    return { lessons: [document] }
  },
}

const cursorKey: Kind = {
  name: 'cursor key',
  table: 'routing_key',
  select: 'SELECT key, 1 AS only FROM routing_key',
  key: { only: '1' },
  documents: ({ key }) => ({
    gateway_settings: [{ _id: `${gatewayScope}/cursor_key`, ...scope, key: Buffer.from(key as Uint8Array) }],
  }),
}

const signatures = collectionKind(
  {
    title: 'claimed signed requests',
    scope: gatewayScope,
    declaration: claimCollection('gateway_signatures'),
  },
  ({ name = '', holder = '', until }) => ({ name, holder, until }),
)

const plan: Plan = {
  kinds: [registry, oauth, routes, routeAgents, decisions, lessons, signatures, cursorKey],
  collections: [
    'registry_agents',
    'oauth_entries',
    'routes',
    'route_agents',
    'decisions',
    'lessons',
    'gateway_signatures',
    'gateway_settings',
  ],
  // A gateway already started on the target has created its own agents, clients and keys there.
  work: ['registry_agents', 'oauth_entries', 'routes'],
}
