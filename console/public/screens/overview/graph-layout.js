/**
 * Places parties and the calls between them in columns from left to right: callers first, then each agent to the right of the agents
 * that call it. Beyond `nodesMax`, the agents with the fewest calls become one node, so the graph stays readable.
 *
 * @typedef {{ from: string, to: string, count: number, errors: number, p50_ms: number | null }} Call
 * @typedef {{ id: string, column: number, row: number, calls: number, errors: number, members: number }} Node
 * @typedef {{ nodes: Node[], edges: Call[], columns: number, rows: number }} Graph
 */

/** The id of the node for several agents. It is not a valid slug. */
export const others = '+others'
/** The id of the clients that are not agents. */
export const callers = 'callers'

const columnsMax = 5

/**
 * @param {Call[]} calls
 * @param {{ nodesMax?: number }} [options]
 * @returns {Graph}
 */
export function layOut(calls, { nodesMax = 16 } = {}) {
  const kept = busiest(calls, nodesMax)
  const edges = merged(calls, (id) => (kept.names.has(id) || id === callers ? id : others))
  const columns = columnsOf(edges)
  const nodes = [...columns].map(([id, column]) => nodeOf(id, column, edges, id === others ? kept.left : 1))
  place(nodes, edges)
  const used = Math.max(0, ...nodes.map(({ column }) => column)) + 1
  const rows = Math.max(1, ...nodes.map(({ row }) => row + 1))
  return { nodes, edges, columns: used, rows }
}

/**
 * @param {Call[]} calls
 * @param {number} max
 */
function busiest(calls, max) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const { from, to, count } of calls)
    for (const id of [from, to]) if (id !== callers) counts.set(id, (counts.get(id) ?? 0) + count)
  const sorted = [...counts].sort(([a, x], [b, y]) => y - x || a.localeCompare(b)).map(([id]) => id)
  const names = new Set(sorted.length <= max + 1 ? sorted : sorted.slice(0, max))
  return { names, left: sorted.length - names.size }
}

/**
 * @param {Call[]} calls
 * @param {(id: string) => string} nameOf
 * @returns {Call[]}
 */
function merged(calls, nameOf) {
  /** @type {Map<string, Call>} */
  const edges = new Map()
  for (const call of calls) {
    const [from, to] = [nameOf(call.from), nameOf(call.to)]
    const key = JSON.stringify([from, to])
    const old = edges.get(key)
    if (old === undefined) edges.set(key, { ...call, from, to })
    else
      edges.set(key, {
        from,
        to,
        count: old.count + call.count,
        errors: old.errors + call.errors,
        p50_ms: null,
      })
  }
  return [...edges.values()]
}

/**
 * The column of each party: one more than the furthest of its callers. A call back to a party on the way to it is left out, so circles
 * end.
 *
 * @param {Call[]} edges
 * @returns {Map<string, number>}
 */
function columnsOf(edges) {
  /** @type {Map<string, string[]>} */
  const callersOf = new Map()
  for (const { from, to } of edges) {
    callersOf.set(to, [...(callersOf.get(to) ?? []), from])
    if (!callersOf.has(from)) callersOf.set(from, [])
  }
  /** @type {Map<string, number>} */
  const columns = new Map()
  const visit = (/** @type {string} */ id, /** @type {Set<string>} */ path) => {
    const known = columns.get(id)
    if (known !== undefined) return known
    path.add(id)
    let column = id === callers ? 0 : 1
    for (const caller of callersOf.get(id) ?? []) {
      if (caller === id || path.has(caller) || id === callers) continue
      column = Math.max(column, visit(caller, path) + 1)
    }
    path.delete(id)
    columns.set(id, Math.min(column, columnsMax - 1))
    return column
  }
  for (const id of callersOf.keys()) visit(id, new Set())
  if (!columns.has(callers)) for (const [id, column] of columns) columns.set(id, column - 1)
  return columns
}

/**
 * @param {string} id
 * @param {number} column
 * @param {Call[]} edges
 * @param {number} members
 * @returns {Node}
 */
function nodeOf(id, column, edges, members) {
  const own = edges.filter(({ from, to }) => (id === callers ? from === id : to === id))
  const sum = (/** @type {'count' | 'errors'} */ field) => own.reduce((total, edge) => total + edge[field], 0)
  return { id, column, row: 0, calls: sum('count'), errors: sum('errors'), members }
}

/**
 * Sorts each column by the mean row of its callers, and centers the columns.
 *
 * @param {Node[]} nodes
 * @param {Call[]} edges
 */
function place(nodes, edges) {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const columns = Map.groupBy(nodes, ({ column }) => column)
  const tallest = Math.max(...[...columns.values()].map((column) => column.length))
  for (const column of [...columns.keys()].sort((a, b) => a - b)) {
    const own = columns.get(column) ?? []
    const weight = (/** @type {Node} */ node) => {
      const from = edges.filter((edge) => edge.to === node.id && (byId.get(edge.from)?.column ?? 0) < column)
      const total = from.reduce((sum, edge) => sum + edge.count, 0)
      return (
        from.reduce((sum, edge) => sum + (byId.get(edge.from)?.row ?? 0) * edge.count, 0) / Math.max(1, total)
      )
    }
    const weights = new Map(own.map((node) => [node, weight(node)]))
    const last = (/** @type {Node} */ node) => (node.id === others ? 1 : 0)
    own.sort(
      (a, b) => last(a) - last(b) || (weights.get(a) ?? 0) - (weights.get(b) ?? 0) || b.calls - a.calls,
    )
    for (const [index, node] of own.entries()) node.row = index + (tallest - own.length) / 2
  }
}
