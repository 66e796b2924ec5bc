import type { DocumentDatabase } from '@parley/kit/database/documents'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { mongodbDocuments } from '@parley/kit/database/mongodb/documents'
import { type Index, prepareSchema } from '@parley/kit/database/mongodb/schema'

const indexes: Record<string, Index[]> = {
  foreign_links: [
    { name: 'links_of_kind', key: { agent_id: 1, kind: 1 } },
    { name: 'links_expired', key: { agent_id: 1, expires_at: 1 } },
  ],
}

/** Opens the links in a database that the relays of all gateways share. */
export async function openMongodbLinks(
  url: string,
): Promise<{ documents: DocumentDatabase; close: () => Promise<void> }> {
  await using stack = new AsyncDisposableStack()
  const { db } = stack.use(await connectMongodb({ url }))
  await prepareSchema(db, 'relay_store', { indexes, migrations: [] })
  const open = stack.move()
  return { documents: mongodbDocuments(db, 'relay'), close: () => open.disposeAsync() }
}
