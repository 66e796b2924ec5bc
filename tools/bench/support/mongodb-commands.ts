import { connectMongodb } from '@parley/kit/database/mongodb/database'

const counted = ['insert', 'update', 'find', 'delete', 'aggregate', 'findAndModify']

/** How often each was asked since the server started; empty where it does not count or does not tell. */
export async function mongodbCommands(url: string): Promise<Record<string, number>> {
  await using database = await connectMongodb({ url })
  const status = await database.client.db('admin').command({ serverStatus: 1 })
  const { commands = {} } = (status['metrics'] ?? {}) as { commands?: Record<string, { total?: unknown }> }
  return Object.fromEntries(counted.map((name) => [name, Number(commands[name]?.total ?? 0)]))
}
