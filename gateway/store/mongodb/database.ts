import { refuseUnfinishedImport } from '@parley/engine/store/mongodb/import'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { mongodbDocuments } from '@parley/kit/database/mongodb/documents'
import { guarded } from '@parley/kit/database/mongodb/guard'
import { prepareSchema } from '@parley/kit/database/mongodb/schema'
import type { Collection, Db } from 'mongodb'
import { gatewaySchema } from './schema.ts'

/** `agent_id` of all documents of the gateways. Documents of agents are in the same database. */
export const gatewayScope = 'gateway'

export interface GatewayMongodbOptions {
  /** `mongodb://…/database`, shared with the agents. */
  url: string
  /** Timeout per operation. Default 10,000. */
  operationTimeoutMs?: number
  /** For tests: called with each command. */
  onCommand?: (command: Record<string, unknown>) => void
}

/** The database shared by all gateways of a deployment. */
export interface GatewayMongodb extends AsyncDisposable {
  readonly documents: DocumentDatabase
  collection<T extends { _id: string; agent_id: string }>(name: string): Collection<T>
  /** Wraps methods with a timeout and converts driver errors. */
  guard<T extends object>(methods: T, unbounded?: ReadonlySet<string>): T
  /** Writes a document. Rejects if the server does not respond. */
  ping(): Promise<void>
}

/**
 * @throws DatabaseRefused if the server is unreachable, too old or refuses the user, or a newer version wrote the
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
