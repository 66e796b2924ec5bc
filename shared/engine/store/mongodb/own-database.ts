import { DatabaseRefused } from '@parley/kit/database/errors'
import type { Db } from 'mongodb'

/**
 * Names the database of a supervised agent. The gateway's database has one for each agent that a gateway has run, and
 * the agent's database has one until it contains all data of the agent.
 */
export interface OwnDatabase {
  /** The id of the agent. */
  _id: string
  agent_id: string
  /** The name of the agent at its first start. */
  name: string
  database: string
  /** `verified`: the copy is complete, and the originals are being removed. */
  state: 'moving' | 'verified' | 'moved'
}

export const ownDatabases = (db: Db) => db.collection<OwnDatabase>('agent_databases')

/**
 * @throws DatabaseRefused if the agent's data is in another database, or is still being moved into this one
 */
export async function refuseOtherDatabase(db: Db, agentId: string): Promise<void> {
  const found = await ownDatabases(db).findOne({ _id: agentId, agent_id: agentId })
  if (found === null) return
  throw new DatabaseRefused(
    found.database === db.databaseName
      ? `The data of this agent is being moved into the database ${found.database}. Start the agent again when its gateway has started it.`
      : `The data of this agent is in the database ${found.database}, because a gateway runs the agent: name that database in STORE_URL.`,
  )
}
