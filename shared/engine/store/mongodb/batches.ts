import { Batches, insertBatches, type Outcome, unorderedWrite } from '@parley/kit/database/mongodb/batches'
import { unlessConflict } from '@parley/kit/database/mongodb/database'
import { isTerminal } from '@parley/wire/model/task'
import type { Collection, Db } from 'mongodb'
import type { TaskRecord } from '../store.ts'
import type { ContextDocument, StoreBatches, TaskDocument, TaskEnd } from './record.ts'

export function storeBatches(db: Db): StoreBatches {
  const tasks = db.collection<TaskDocument>('tasks')
  return {
    newTasks: insertBatches(tasks),
    newContexts: insertBatches(db.collection<ContextDocument>('contexts')),
    ends: new Batches({
      charsOf: ({ document }) => document.body.length,
      write: (ends) => writeEnds(tasks, ends),
    }),
  }
}

/** Whether no other change can follow: an ended task changes only if it has called other agents. */
export function isLastChange({ status, children = [] }: TaskRecord): boolean {
  return isTerminal(status.state) && children.length === 0
}

/**
 * Writes the last changes of tasks in one command. The outcome of each is whether its filter matched. The server reports
 * only the number of matches. If it is too small, the tasks are read: as no change can follow, exactly the tasks with the
 * written document have matched. A task that was removed in between counts as not matched.
 */
async function writeEnds(tasks: Collection<TaskDocument>, ends: TaskEnd[]): Promise<Outcome<boolean>[]> {
  const [only] = ends
  if (ends.length === 1 && only !== undefined)
    return [{ value: (await tasks.updateOne(only.filter, only.update)).matchedCount === 1 }]
  const operations = ends.map(({ filter, update }) => ({ updateOne: { filter, update } }))
  const written = await unlessConflict(unorderedWrite(tasks, operations))
  if (written !== undefined && written.matched === ends.length) return ends.map(() => ({ value: true }))
  const errors = written?.errors ?? (await writeSingly(tasks, ends))
  const stored = await storedOf(tasks, ends)
  return ends.map((end, index) => {
    const error = stored.has(end) ? undefined : errors.get(index)
    return error === undefined ? { value: stored.has(end) } : { error }
  })
}

/** Returns the errors of single writes. */
async function writeSingly(tasks: Collection<TaskDocument>, ends: TaskEnd[]): Promise<Map<number, unknown>> {
  const errors = new Map<number, unknown>()
  const all = ends.map(({ filter, update }, index) =>
    tasks.updateOne(filter, update).catch((error: unknown) => errors.set(index, error)),
  )
  await Promise.all(all)
  return errors
}

/** Returns those whose document is in the store. */
async function storedOf(tasks: Collection<TaskDocument>, ends: TaskEnd[]): Promise<Set<TaskEnd>> {
  const agentIds = [...new Set(ends.map(({ document }) => document.agent_id))]
  const found = await tasks
    .find({ _id: { $in: ends.map(({ _id }) => _id) }, agent_id: { $in: agentIds } })
    .project<Pick<TaskDocument, '_id' | 'version' | 'body'>>({ version: 1, body: 1 })
    .toArray()
  const stored = new Map(found.map((document) => [document._id, document]))
  const isStored = ({ _id, document }: TaskEnd) =>
    stored.get(_id)?.version === document.version && stored.get(_id)?.body === document.body
  return new Set(ends.filter(isStored))
}
