import type { Kind, Plan } from '@parley/engine/migration/kind'
import type { Part } from '@parley/engine/migration/migrate'
import { hashOf, keyText } from '@parley/kit/database/keys'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { gatewayMigrations } from './gateway-state.ts'
import { oauthDocument, oauthIndexes } from './oauth/oauth-mongodb.ts'
import type { AgentEntry } from './registry/entry.ts'
import { registryDocument, registryIndexes } from './registry/store/mongodb/registry.ts'
import {
  decisionDocument,
  type RouteAgentDocument,
  routeDocument,
  routingIndexes,
} from './routing/store/mongodb/routing.ts'
import type { TrainingExampleDocument } from './routing/store/mongodb/training-examples.ts'
import type { DecisionRecord } from './routing/store/routing-store.ts'
import { routeColumns, routeOf } from './routing/store/sqlite/routing.ts'
import { type ClaimDocument, claimKey, claimsIndexes } from './store/claims-mongodb.ts'
import { gatewaySchema, gatewayScope } from './store/mongodb/database.ts'

const scope = { agent_id: gatewayScope }

/** The gateway's own database: registry, OAuth server, routing. */
export function gatewayPart(file: string): Part {
  const indexes = { ...registryIndexes, ...oauthIndexes, ...routingIndexes, ...claimsIndexes }
  const schema = { ...gatewaySchema, indexes }
  return {
    name: 'gateway',
    scope: gatewayScope,
    file,
    migrations: gatewayMigrations,
    schema,
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

const oauth: Kind = {
  name: 'OAuth entries',
  table: 'oauth_entries',
  select:
    'SELECT model, id, payload, client_id, grant_id, uid, user_code, consumed_at, expires_at FROM oauth_entries',
  key: { model: 'model', id: 'id' },
  documents: (row) => {
    const { consumed_at, expires_at: expiresAt } = row as Record<string, number | null>
    const {
      model = '',
      id = '',
      payload = '{}',
      client_id,
      grant_id,
      uid,
      user_code,
    } = row as Record<string, string>
    const document = oauthDocument({
      model,
      id,
      payload: JSON.parse(payload) as Record<string, unknown>,
      ...(client_id && { clientId: client_id }),
      ...(grant_id && { grantId: grant_id }),
      ...(uid && { uid }),
      ...(user_code && { userCode: user_code }),
      ...(typeof expiresAt === 'number' && { expiresAt }),
    })
    return { oauth_entries: [typeof consumed_at === 'number' ? { ...document, consumed_at } : document] }
  },
}

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
    const whose = owner !== null ? { owner } : holder !== '' && { holder }
    const record = { id, at, body: JSON.parse(body as string) as unknown, ...whose }
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

const signatures: Kind = {
  name: 'signed requests taken',
  table: 'gateway_signatures',
  select: 'SELECT name, holder, until FROM gateway_signatures',
  key: { name: 'name' },
  documents: ({ name, holder, until }) => {
    const document: ClaimDocument = {
      _id: claimKey(name as string),
      ...scope,
      holder: keyText(holder as string),
      until: until as number,
    }
    return { gateway_signatures: [document] }
  },
}

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
  // A gateway that was started with the target has its own agents, clients and keys there.
  work: ['registry_agents', 'oauth_entries', 'routes'],
}
