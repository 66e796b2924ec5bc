import { refuseUnfinishedImport } from '@parley/engine/store/mongodb/import'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { mongodbDocuments } from '@parley/kit/database/mongodb/documents'
import { guarded } from '@parley/kit/database/mongodb/guard'
import { prepareSchema } from '@parley/kit/database/mongodb/schema'
import type { Collection, Db } from 'mongodb'
import { gatewaySchema } from './schema.ts'

/** `agent_id` of every document of the gateways. The documents of agents are in the same database. */
export const gatewayScope = 'gateway'

export interface GatewayMongodbOptions {
  /** `mongodb://…/database`, the one that the agents use too. */
  url: string
  /** Timeout of one operation. Default 10,000. */
  operationTimeoutMs?: number
  /** For tests: called with each command. */
  onCommand?: (command: Record<string, unknown>) => void
}

/** The database that all gateways of a deployment share. */
export interface GatewayMongodb extends AsyncDisposable {
  readonly documents: DocumentDatabase
  collection<T extends { _id: string; agent_id: string }>(name: string): Collection<T>
  /** The methods with a timeout, and without errors of the driver. */
  guard<T extends object>(methods: T, unbounded?: ReadonlySet<string>): T
  /** Writes a document. Rejects when the server does not answer. */
  ping(): Promise<void>
}

/** @throws DatabaseRefused when the server is missing, too old or refuses the user, or a newer version wrote the database */
export async function openGatewayMongodb(options: GatewayMongodbOptions): Promise<GatewayMongodb> {
  await using stack = new AsyncDisposableStack()
  const { url, onCommand } = options
  const { db } = stack.use(await connectMongodb({ url, ...(onCommand && { onCommand }) }))
  await refuseUnfinishedImport(db, gatewayScope)
  await prepareSchema(db, gatewaySchema.name, gatewaySchema)
  // The first write makes the collection, which may take longer than `/health` waits.
  await ping(db)
  const open = stack.move()
  const timeoutMs = options.operationTimeoutMs ?? 10_000
  const guard: GatewayMongodb['guard'] = (methods, unbounded) =>
    guarded(methods, { closed: () => open.disposed, timeoutMs, ...(unbounded && { unbounded }) })
  return {
    documents: mongodbDocuments(db, gatewayScope),
    collection: (name) => db.collection(name),
    guard,
    ...guard({ ping: () => ping(db) }),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

async function ping(db: Db): Promise<void> {
  const ours = { _id: `${gatewayScope}/ping`, agent_id: gatewayScope }
  await db
    .collection<{ _id: string; agent_id: string; at: number }>('gateway_settings')
    .updateOne(ours, { $set: { at: Date.now() } }, { upsert: true })
}
