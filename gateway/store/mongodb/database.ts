import { refuseUnfinishedImport } from '@parley/engine/store/mongodb/import'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { mongodbDocuments } from '@parley/kit/database/mongodb/documents'
import { guarded } from '@parley/kit/database/mongodb/guard'
import { prepareSchema } from '@parley/kit/database/mongodb/schema'
import type { Collection, Db } from 'mongodb'
import { gatewaySchema } from './schema.ts'

/** The `agent_id` of all documents that gateways write. Agents store their documents in the same database. */
export const gatewayScope = 'gateway'

export interface GatewayMongodbOptions {
  /** The URL `mongodb://…/database` of the database that is shared with the agents. */
  url: string
  /** Timeout per operation. Defaults to 10,000. */
  operationTimeoutMs?: number
  /** Called with each command. Used by tests. */
  onCommand?: (command: Record<string, unknown>) => void
}

/** The database shared by all gateways of a deployment. */
export interface GatewayMongodb extends AsyncDisposable {
  readonly documents: DocumentDatabase
  collection<T extends { _id: string; agent_id: string }>(name: string): Collection<T>
  /** Wraps methods to add a timeout and convert driver errors. */
  guard<T extends object>(methods: T, unbounded?: ReadonlySet<string>): T
  /** Checks the server by writing a document. Rejects if the server does not respond. */
  ping(): Promise<void>
}

/**
 * @throws DatabaseRefused if the server is unreachable or too old or refuses the user, or if a newer version wrote to the
 * database
 */
export async function openGatewayMongodb(options: GatewayMongodbOptions): Promise<GatewayMongodb> {
  await using stack = new AsyncDisposableStack()
  const { url, onCommand } = options
  const { db } = stack.use(await connectMongodb({ url, ...(onCommand && { onCommand }) }))
  await refuseUnfinishedImport(db, gatewayScope)
  await prepareSchema(db, gatewaySchema.name, gatewaySchema)
  // The first write creates the collection, which may take longer than the timeout of `/health`.
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
