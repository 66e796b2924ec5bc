/** A directed graph: each node with the nodes that it depends on. */
export type Graph = Map<string, Set<string>>

/**
 * The longest chain of dependencies, starting with the node that depends on the others. Nodes that depend on each other
 * in a cycle form one link, named `a + b`.
 */
export function longestChain(graph: Graph): string[] {
  const groups = stronglyConnected(graph)
  const groupOf = new Map(groups.flatMap((group) => group.map((node): [string, string[]] => [node, group])))
  const chains = new Map<string[], string[]>()
  const chainFrom = (group: string[]): string[] => {
    const known = chains.get(group)
    if (known) return known
    let longest: string[] = []
    for (const node of group) {
      for (const to of graph.get(node) ?? []) {
        const next = groupOf.get(to)
        if (next === undefined || next === group) continue
        const chain = chainFrom(next)
        if (chain.length > longest.length) longest = chain
      }
    }
    const chain = [group.join(' + '), ...longest]
    chains.set(group, chain)
    return chain
  }
  return groups
    .map(chainFrom)
    .reduce((longest, chain) => (chain.length > longest.length ? chain : longest), [])
}

/** Finds the strongly connected components with Tarjan's algorithm. */
function stronglyConnected(graph: Graph): string[][] {
  const indexes = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const groups: string[][] = []
  const visit = (node: string) => {
    const index = indexes.size
    indexes.set(node, index)
    stack.push(node)
    let low = index
    for (const to of graph.get(node) ?? []) {
      if (!graph.has(to)) continue
      if (!indexes.has(to)) visit(to)
      if (stack.includes(to)) low = Math.min(low, lowest.get(to) ?? indexes.get(to) ?? low)
    }
    lowest.set(node, low)
    if (low === index) groups.push(stack.splice(stack.indexOf(node)).toSorted())
  }
  for (const node of graph.keys()) if (!indexes.has(node)) visit(node)
  return groups
}
