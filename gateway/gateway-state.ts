import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import type { GatewayConfig } from './config.ts'
import { oauthMigrations, SqliteOAuthStore } from './oauth/oauth-sqlite.ts'
import type { OAuthStore } from './oauth/oauth-store.ts'
import { registryMigrations, SqliteRegistryStore } from './registry/registry-sqlite.ts'
import type { RegistryStore } from './registry/store.ts'
import { routingMigrations, SqliteRoutingStore } from './routing/store/routing-sqlite.ts'
import type { RoutingStore } from './routing/store/routing-store.ts'
import type { Claims } from './store/claims.ts'
import { claimsMigrations, sqliteClaims } from './store/claims-sqlite.ts'

/** Everything that outlives a gateway's process. */
export interface GatewayState extends AsyncDisposable {
  registry: RegistryStore
  oauth: OAuthStore
  routing: RoutingStore
  /** As `/health` names it. */
  backend: 'sqlite' | 'mongodb'
  /** Where several gateways share it; undefined: this process is the only one. */
  claims: Claims | undefined
  /** Signed requests that agents which require signatures have taken: each by one agent. */
  signatures: Claims
  ping(): Promise<void>
}

export interface StateOptions {
  config: GatewayConfig
  /** STORE_URL where it is a MongoDB database; undefined: a file in DATA_DIR or where STORE_URL says. */
  storeUrl: string | undefined
  /** It runs agents, whose keys are in DATA_DIR: no other process may do so from the same folder. */
  supervises: boolean
}

/** The steps of the schema of `gateway.db` in the order in which they came; steps are added, never changed or moved. */
export const gatewayMigrations = [
  oauthMigrations[0] as string,
  registryMigrations[0],
  routingMigrations[0],
  routingMigrations[1],
  routingMigrations[2],
  claimsMigrations[0],
]

/**
 * The gateway's own database, or the one that it shares with other gateways. The driver of the latter is loaded only where it
 * is used.
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
  // One gateway per data folder: the database is the lock, also where it stands elsewhere (STORE_URL).
  if (config.storeDir !== config.dataDir) await inUse()
  const database = stack.use(await openDatabase(path.join(config.storeDir, 'gateway.db'), gatewayMigrations))
  const open = stack.move()
  return {
    registry: new SqliteRegistryStore(database),
    oauth: new SqliteOAuthStore(database),
    routing: new SqliteRoutingStore(database),
    backend: 'sqlite',
    claims: undefined,
    signatures: sqliteClaims(database),
    ping: () => database.ping(),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
