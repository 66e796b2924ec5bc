import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import type { GatewayConfig } from './config.ts'
import { type OAuthStore, oauthStore } from './oauth/oauth-store.ts'
import type { RegistryStore } from './registry/store/registry-store.ts'
import { SqliteRegistryStore } from './registry/store/sqlite/registry.ts'
import type { RoutingStore } from './routing/store/routing-store.ts'
import { SqliteRoutingStore } from './routing/store/sqlite/routing.ts'
import { type Claims, claimsIn } from './store/claims.ts'
import { gatewayMigrations } from './store/sqlite/schema.ts'

/** Persistent state of the gateway. */
export interface GatewayState extends AsyncDisposable {
  registry: RegistryStore
  oauth: OAuthStore
  routing: RoutingStore
  /** The name in `/health`. */
  backend: 'sqlite' | 'mongodb'
  /** Claims shared by several gateways; undefined if this is the only one. */
  claims: Claims | undefined
  /** Signed requests claimed by agents that require signatures; each by one agent. */
  signatures: Claims
  ping(): Promise<void>
}

export interface StateOptions {
  config: GatewayConfig
  /** STORE_URL of a MongoDB database; undefined: a file in DATA_DIR or at STORE_URL. */
  storeUrl: string | undefined
  /** Whether the gateway runs agents. Their keys are in DATA_DIR, which no other process may use at the same time. */
  supervises: boolean
}

/**
 * Opens the gateway's own database, or the one shared with other gateways. The MongoDB driver is loaded only if needed.
 * @throws DatabaseRefused
 */
export async function openGatewayState({
  config,
  storeUrl,
  supervises,
}: StateOptions): Promise<GatewayState> {
  await using stack = new AsyncDisposableStack()
  const inUse = async () => stack.use(await openDatabase(path.join(config.dataDir, 'in-use.db'), []))
  if (storeUrl !== undefined) {
    if (supervises) await inUse()
    const { openSharedState } = await import('./gateway-state-mongodb.ts')
    const shared = stack.use(await openSharedState(storeUrl))
    const open = stack.move()
    return { ...shared, [Symbol.asyncDispose]: () => open.disposeAsync() }
  }
  // One gateway per data folder: the database in it is the lock, even if the store is elsewhere (STORE_URL).
  if (config.storeDir !== config.dataDir) await inUse()
  const database = stack.use(await openDatabase(path.join(config.storeDir, 'gateway.db'), gatewayMigrations))
  const documents = sqliteDocuments(database)
  const open = stack.move()
  return {
    registry: new SqliteRegistryStore(database),
    oauth: oauthStore(documents),
    routing: new SqliteRoutingStore(database),
    backend: 'sqlite',
    claims: undefined,
    signatures: claimsIn(documents, 'gateway_signatures'),
    ping: () => database.ping(),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
