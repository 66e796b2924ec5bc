/** Writes the tasks of `fillTasks` directly to a MongoDB database, much faster than creating them. */
import { LargeParts } from '@parley/engine/store/large-parts'
import {
  boundOf,
  type ContextDocument,
  encodeTask,
  type MongoContext,
} from '@parley/engine/store/mongodb/record'
import type { TaskRecord } from '@parley/engine/store/store'
import { positionOf } from '@parley/kit/database/keys'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { sampleTask } from '../support/sample-task.ts'
import { contextIdOf, ownerOf, taskIdOf } from '../support/sqlite-fill.ts'

const [batch, atOnce] = [1000, 4]

/** Requires a store that has been opened before, which creates the indexes. Four tasks share a context. */
export async function fillMongodb(url: string, agentId: string, count: number): Promise<void> {
  await using database = await connectMongodb({ url })
  const [tasks, contexts] = [database.db.collection('tasks'), database.db.collection('contexts')]
  let next = 0
  const fill = async () => {
    for (let from = next; from < count; from = next) {
      next = Math.min(count, from + batch)
      const records = Array.from({ length: next - from }, (_, i) => recordOf(from + i))
      const firsts = records.filter((_, i) => (from + i) % 4 === 0)
      await tasks.insertMany(records.map((record) => documentOf(agentId, record)) as never[])
      await contexts.insertMany(firsts.map((record) => contextOf(agentId, record)) as never[])
    }
  }
  await Promise.all(Array.from({ length: atOnce }, fill))
}

function recordOf(number: number): TaskRecord {
  const [id, contextId] = [taskIdOf(number), contextIdOf(number)]
  const at = new Date(1.7e12 + number * 10).toISOString().replace('Z', '000+00:00')
  const owner = ownerOf(Math.floor(number / 4))
  const body = JSON.parse(sampleTask(id, contextId, at)) as TaskRecord
  return { ...body, id, contextId, owner, createdAt: at, updatedAt: at, version: 2 }
}

const largeParts = new LargeParts(256 * 1024)

function documentOf(agentId: string, record: TaskRecord) {
  return encodeTask({ agentId, largeParts } as MongoContext, record, boundOf('completed')).document
}

function contextOf(agentId: string, { contextId, owner, createdAt }: TaskRecord): ContextDocument {
  return {
    _id: `${agentId}/${contextId}`,
    agent_id: agentId,
    owner,
    position: positionOf(createdAt, contextId),
    version: 4,
    created_at: createdAt,
    updated_at: createdAt,
    body: JSON.stringify({ id: contextId, owner }),
  }
}
