import path from 'node:path'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments, sqliteDocumentsSoon } from '@parley/kit/database/sqlite/documents'
import type { Log } from '@parley/kit/process/log'
import type { GatewayConfig } from './config.ts'
import type { MasterKeySettings } from './keys/master-key.ts'
import { GatewayKeys } from './keys/open-keys.ts'
import type { LeaseRecords } from './oauth/leases/lease-records.ts'
import { type OAuthStore, oauthStore } from './oauth/oauth-store.ts'
import { type AgentChanges, agentChanges } from './records/agent-history.ts'
import { type AuditEntries, auditEntries } from './records/audit-entries.ts'
import type { RegistryStore } from './registry/store/registry-store.ts'
import { SqliteRegistryStore } from './registry/store/sqlite/registry.ts'
import { type GrantRecords, ownGrants } from './routing/forwarding/grant-records.ts'
import type { RoutingStore } from './routing/store/routing-store.ts'
import { SqliteRoutingStore } from './routing/store/sqlite/routing.ts'
import { type Claims, claimsIn } from './store/claims.ts'
import { gatewayMigrations } from './store/sqlite/schema.ts'

/** The persistent state of the gateway. */
export interface GatewayState extends AsyncDisposable {
  registry: RegistryStore
  oauth: OAuthStore
  /** The keys that encrypt the OAuth records and the files in DATA_DIR/oauth. */
  keys: GatewayKeys
  routing: RoutingStore
  /** The name of the storage in `/health`. */
  backend: 'sqlite' | 'mongodb'
  /** Claims shared by several gateways, or undefined if this is the only gateway. */
  claims: Claims | undefined
  /** Introspection leases of all gateways, or undefined if this is the only gateway. */
  leases: LeaseRecords | undefined
  /** Grants that let agents read the tasks that messages refer to. */
  grants: GrantRecords
  /** Claims on signed requests by agents that require signatures. Only one agent can claim each request. */
  signatures: Claims
  /** The stored part of the audit log, and the changes of agents. */
  audit: AuditEntries
  history: AgentChanges
  ping(): Promise<void>
}

export interface StateOptions {
  config: GatewayConfig
  /** STORE_URL of a MongoDB database. If undefined, the store is a file in DATA_DIR or at STORE_URL. */
  storeUrl: string | undefined
  /** Whether the gateway runs agents. Their keys are in DATA_DIR, which only one process may use at a time. */
  supervises: boolean
  masterKey: MasterKeySettings
  log: Log
}

/**
 * Opens the gateway's own database or the one shared with other gateways. The MongoDB driver is loaded only if needed.
 * @throws DatabaseRefused, KeysRefused, ExposedSecretFile
 */
export async function openGatewayState({
  config,
  storeUrl,
  supervises,
  masterKey,
  log,
}: StateOptions): Promise<GatewayState> {
  await using stack = new AsyncDisposableStack()
  const inUse = async () => stack.use(await openDatabase(path.join(config.dataDir, 'in-use.db'), []))
  if (storeUrl !== undefined) {
    if (supervises) await inUse()
    const { openSharedState } = await import('./gateway-state-mongodb.ts')
    const shared = stack.use(
      await openSharedState(storeUrl, { dataDir: config.dataDir, settings: masterKey, log }),
    )
    const open = stack.move()
    return { ...shared, [Symbol.asyncDispose]: () => open.disposeAsync() }
  }
  // The database in the data folder locks the folder for one gateway, even if the store is elsewhere (STORE_URL).
  if (config.storeDir !== config.dataDir) await inUse()
  const database = stack.use(await openDatabase(path.join(config.storeDir, 'gateway.db'), gatewayMigrations))
  const documents = sqliteDocuments(database)
  const later = sqliteDocumentsSoon(database)
  const routing = stack.use(new SqliteRoutingStore(database))
  const eraseFreed = () => rewrite(database)
  const keys = await GatewayKeys.open({
    dataDir: config.dataDir,
    settings: masterKey,
    documents,
    eraseFreed,
    log,
  })
  const open = stack.move()
  return {
    registry: new SqliteRegistryStore(database),
    oauth: oauthStore(documents, keys.cipher),
    keys,
    routing,
    backend: 'sqlite',
    claims: undefined,
    leases: undefined,
    grants: ownGrants(),
    signatures: claimsIn(documents, 'gateway_signatures'),
    audit: auditEntries(later),
    history: agentChanges(later),
    ping: () => database.ping(),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** Rewrites the file and its log, so that neither contains removed data. */
async function rewrite(database: SqliteDatabase): Promise<void> {
  await database.read(() => database.statement('VACUUM').run())
  await database.read(() => database.statement('PRAGMA wal_checkpoint(TRUNCATE)').get())
}
