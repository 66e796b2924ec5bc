import { keyText } from '@parley/kit/database/keys'
import { isTerminal, type TaskState, taskStates } from '@parley/wire/model/task'
import { type AllTasksPage, type AllTasksQuery, allTasksPageMaxBytes, delegatesMax } from '../all-tasks.ts'
import { idIn, type MongoContext, outlineOf, type TaskDocument } from './record.ts'

const list = 'all tasks'

type Found = Pick<TaskDocument, '_id' | 'status_position'>
const ofFound = { _id: 1, status_position: 1 }
type Filter = NonNullable<Parameters<MongoContext['tasks']['find']>[0]>

export async function listAllTasks(store: MongoContext, query: AllTasksQuery): Promise<AllTasksPage> {
  const { agentId, cursors, tasks } = store
  const { cursor, limit } = query
  const before = cursor === undefined ? undefined : keyText(String(cursors.open(list, '', cursor)))
  const filters = await filtersOf(store, query)
  if (filters === undefined) return { items: [] }
  const range = rangeOf(query, before)
  const states = [...taskStates].filter((state) => query.states?.includes(state) ?? true)
  const found: Found[] = []
  for (const filter of filters) {
    for (const group of [states.filter(isTerminal), states.filter((state) => !isTerminal(state))])
      if (group.length > 0)
        found.push(...(await newest(store, { ...filter, ...inStates(group, filter) }, { range, limit })))
  }
  const sorted = found.sort((a, b) => (positionOf(a) < positionOf(b) ? 1 : -1)).slice(0, limit + 1)
  if (sorted.length === 0) return { items: [] }
  const ids = sorted.slice(0, limit).map(({ _id }) => _id)
  const documents = new Map<string, TaskDocument>()
  for await (const one of tasks.find({ _id: { $in: ids }, agent_id: agentId })) documents.set(one._id, one)
  const items: AllTasksPage['items'] = []
  let [bytes, read] = [0, 0]
  for (const id of ids) {
    if (bytes > allTasksPageMaxBytes) break
    read += 1
    const document = documents.get(id)
    // It was removed in the meantime.
    if (document === undefined) continue
    bytes += document.body.length
    items.push(outlineOf(store, document, false).task)
  }
  const last = sorted[read - 1]
  const more = last !== undefined && read < sorted.length
  return more ? { items, nextCursor: cursors.seal(list, '', positionOf(last)) } : { items }
}

const positionOf = ({ status_position = '' }: Found) => status_position

function rangeOf({ since, until }: AllTasksQuery, before: string | undefined): object {
  const ends = [until === undefined ? [] : [keyText(until)], before ?? []].flat().sort()
  const range = {
    ...(since !== undefined && { $gte: keyText(since) }),
    ...(ends[0] !== undefined && { $lt: ends[0] }),
  }
  return Object.keys(range).length === 0 ? {} : { status_position: range }
}

/** The index over all owners contains ended tasks only. */
function inStates(states: readonly TaskState[], filter: Filter): Filter {
  const isOfAll = !('owner' in filter)
  const isEnded = states.some(isTerminal)
  return { state: { $in: [...states] }, ...(isOfAll && isEnded && { ended_at: { $exists: true } }) }
}

/** Open tasks of all owners are few, and are sorted here. */
async function newest(
  { tasks }: MongoContext,
  filter: Filter,
  { range, limit }: { range: object; limit: number },
): Promise<Found[]> {
  const isSortedHere = !('owner' in filter) && !('ended_at' in filter)
  if (!isSortedHere) {
    const found = tasks.find({ ...filter, ...range }).sort({ status_position: -1 })
    return found
      .limit(limit + 1)
      .project<Found>(ofFound)
      .toArray()
  }
  const { $gte = '', $lt = '\uffff' } = ('status_position' in range ? range.status_position : {}) as {
    $gte?: string
    $lt?: string
  }
  const found = await tasks.find(filter).project<Found>(ofFound).toArray()
  const within = found.filter((one) => positionOf(one) >= $gte && positionOf(one) < $lt)
  return within.sort((a, b) => (positionOf(a) < positionOf(b) ? 1 : -1)).slice(0, limit + 1)
}

/** One filter for each owner of the tasks; undefined if there are none. */
async function filtersOf(
  store: MongoContext,
  { owner, contextId }: AllTasksQuery,
): Promise<Filter[] | undefined> {
  const { agentId, contexts } = store
  if (contextId !== undefined) {
    const context = await contexts.findOne({ _id: idIn(store, contextId), agent_id: agentId })
    if (context === null) return undefined
    return [{ agent_id: agentId, owner: context.owner, context_id: keyText(contextId) }]
  }
  if (owner === undefined) return [{ agent_id: agentId }]
  const owners = [keyText(owner)]
  // Delegated owners begin with the owner and U+001F (`delegatedOwner`). Every owner of a task has a context.
  for (let after = `${owner}\u001F`; owners.length <= delegatesMax; after = owners.at(-1) ?? owner) {
    const [next] = await contexts
      .find({ agent_id: agentId, owner: { $gt: keyText(after), $lt: keyText(`${owner}\u0020`) } })
      .sort({ owner: 1 })
      .limit(1)
      .toArray()
    if (next === undefined) break
    owners.push(next.owner)
  }
  return owners.map((one) => ({ agent_id: agentId, owner: one }))
}
