import type { DocumentDatabase } from '@parley/kit/database/documents'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { mongodbDocuments } from '@parley/kit/database/mongodb/documents'
import { type Index, prepareSchema } from '@parley/kit/database/mongodb/schema'

const indexes: Record<string, Index[]> = {
  foreign_links: [
    { name: 'links_of_kind', key: { agent_id: 1, kind: 1 } },
    { name: 'links_of_agent', key: { agent_id: 1, agent: 1, kind: 1 } },
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

/** Removes all documents of an agent from the database that the agents of the relay share. */
export async function removeDocuments(url: string, agentId: string): Promise<void> {
  await using database = await connectMongodb({ url })
  const { db } = database
  for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
    if (name.startsWith('system.')) continue
    // The range selects by the index that every collection has.
    const range = { $gte: `${agentId}/`, $lt: `${agentId}0` }
    await db.collection<{ _id: string; agent_id: string }>(name).deleteMany({ _id: range, agent_id: agentId })
  }
}
