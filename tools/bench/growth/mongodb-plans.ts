import { connectMongodb } from '@parley/kit/database/mongodb/database'

type Command = Record<string, unknown>

/** Marks a plan that sorts all matches instead of using the order of the index. */
export const sorts = 'and sorts all matches'

/**
 * The index that each kind of query uses according to the server's plan, or `none` if it scans all documents. MongoDB
 * uses the order of the index.
 */
export async function plansOf(url: string, commands: Command[]): Promise<Record<string, string>> {
  await using database = await connectMongodb({ url })
  const plans: Record<string, string> = {}
  for (const command of commands) {
    const find = asFind(command)
    if (find === undefined) continue
    const order = Object.keys((find['sort'] as Command | undefined) ?? {}).map((field) => ` by ${field}`)
    const name = `${String(find['find'])}: ${Object.keys(find['filter'] as Command).join(', ')}${order.join('')}`
    if (name in plans) continue
    const explained = await database.db.command({ explain: find, verbosity: 'queryPlanner' })
    plans[name] = indexIn(
      JSON.stringify(explained, (key, value: unknown) => (unused.has(key) ? undefined : value)),
    )
  }
  return plans
}

/** Keys in the server's answer that describe rejected plans. */
const unused = new Set(['IndexCosts', 'rejectedPlans'])

function asFind(command: Command): Command | undefined {
  const updates = command['updates'] as { q: Command }[] | undefined
  const collection = command['find'] ?? command['update']
  const filter = command['filter'] ?? updates?.[0]?.q
  if (typeof collection !== 'string' || filter === undefined) return undefined
  const { sort } = command
  const order = sort === undefined ? {} : { sort: sort instanceof Map ? Object.fromEntries(sort) : sort }
  const { limit } = command
  return { find: collection, filter, ...order, ...(typeof limit === 'number' && { limit }) }
}

function indexIn(plan: string): string {
  if (/IDHACK|EXPRESS/.test(plan)) return '_id_'
  if (/COLLSCAN|Seq Scan/.test(plan)) return 'none: full scan'
  const names = new Set([...plan.matchAll(/"(?:Index Name|indexName)":"([^"]+)"/g)].map(([, name]) => name))
  const sorted = /"Node Type":"Sort"|"stage":"SORT"/.test(plan) ? `, ${sorts}` : ''
  return `${[...names].join(', ') || 'not told'}${sorted}`
}
