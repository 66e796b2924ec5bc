import { attempt, type Cell } from '../interop/run.ts'

/** What the clients call: the gateway with the calculator and the data analyst. */
export interface ClientTarget {
  /** With a final slash. */
  gateway: string
  token: string
}

/** One call, or a few, of a client. It fails by an exception. */
export interface ClientStep {
  name: string
  run: (target: ClientTarget) => Promise<void>
}

/** A client with its steps. */
export interface TestedClient {
  name: string
  steps: readonly ClientStep[]
}

/** The agents that the steps call. */
export const calledAgents = ['calculator', 'data-analyst']

/** Runs every step. A failed step does not stop the others. */
export async function runClient({ steps }: TestedClient, target: ClientTarget): Promise<Map<string, Cell>> {
  const cells = new Map<string, Cell>()
  for (const { name, run } of steps) cells.set(name, await attempt(() => run(target)))
  return cells
}

export function failuresIn(cells: ReadonlyMap<string, Cell>): string[] {
  return [...cells].flatMap(([name, cell]) => (typeof cell === 'object' ? [`${name}: ${cell.failure}`] : []))
}
