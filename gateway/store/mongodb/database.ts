import { refuseUnfinishedImport } from '@parley/engine/store/mongodb/import'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { guarded } from '@parley/kit/database/mongodb/guard'
import { type Index, type Migration, prepareSchema } from '@parley/kit/database/mongodb/schema'
import type { Collection, Db } from 'mongodb'

/** Every document of the gateways carries it as its `agent_id`, beside those of the agents in the same database. */
export const gatewayScope = 'gateway'

export interface GatewayMongodbOptions {
  /** `mongodb://…/database`, the one that the agents use too. */
  url: string
  indexes: Record<string, Index[]>
  /** How long one question or change may take. Default 10,000. */
  operationTimeoutMs?: number
  /** For tests that look at what is asked: hears each command. */
  onCommand?: (command: Record<string, unknown>) => void
}

/** The database that all gateways of a house share. */
export interface GatewayMongodb extends AsyncDisposable {
  collection<T extends { _id: string; agent_id: string }>(name: string): Collection<T>
  /** The methods, but no word of the driver leaves them, and each has a deadline. */
  guard<T extends object>(methods: T, unbounded?: ReadonlySet<string>): T
  /** Asks the server, by a write. */
  ping(): Promise<void>
}

const migrations: readonly Migration[] = [async () => {}]
export const gatewaySchema = { name: 'gateway_store', migrations }

/** @throws DatabaseRefused when the server is missing, too old or refuses the user, or a newer version wrote the database */
export async function openGatewayMongodb(options: GatewayMongodbOptions): Promise<GatewayMongodb> {
  await using stack = new AsyncDisposableStack()
  const { url, onCommand } = options
  const { db } = stack.use(await connectMongodb({ url, ...(onCommand && { onCommand }) }))
  await refuseUnfinishedImport(db, gatewayScope)
  await prepareSchema(db, gatewaySchema.name, { indexes: options.indexes, migrations })
  // The first write makes the collection, which may take longer than `/health` waits.
  await ping(db)
  const open = stack.move()
  const timeoutMs = options.operationTimeoutMs ?? 10_000
  const guard: GatewayMongodb['guard'] = (methods, unbounded) =>
    guarded(methods, { closed: () => open.disposed, timeoutMs, ...(unbounded && { unbounded }) })
  return {
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
