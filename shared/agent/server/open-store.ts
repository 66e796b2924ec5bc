import path from 'node:path'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import type { Store } from '@parley/engine/store/store'

export interface OpenStoreOptions {
  /** STORE_URL where it is `mongodb://…`; undefined: the embedded store. */
  storeUrl: string | undefined
  /** Folder of the embedded store. */
  storeDir: string
  agentId: string
}

export interface OpenStore {
  store: Store
  /** As `/health` names it. */
  backend: 'sqlite' | 'mongodb'
}

/**
 * Where everything of an agent is kept: in a file of its own, or in a MongoDB database that processes and machines share. Its
 * driver is loaded only where it is used.
 * @throws DatabaseRefused when it cannot be opened
 */
export async function openStore({ storeUrl: url, storeDir, agentId }: OpenStoreOptions): Promise<OpenStore> {
  if (url === undefined) {
    return { store: await openSqliteStore({ file: path.join(storeDir, 'agent.db') }), backend: 'sqlite' }
  }
  const { openMongodbStore } = await import('@parley/engine/store/mongodb/store')
  return { store: await openMongodbStore({ url, agentId }), backend: 'mongodb' }
}
