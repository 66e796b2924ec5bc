import { AgentClient, RpcError } from '@parley/client/internal/client'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { isTerminal } from '@parley/wire/model/task'
import { atOnce, settled } from '../chaos/settled.ts'
import type { FailoverCluster } from './cluster.ts'
import type { Acknowledged, Ledger } from './load.ts'
import { type Note, readNotes } from './notes.ts'
import { patiently } from './patiently.ts'

export interface Findings {
  /** Number of acknowledged tasks by final state. */
  ended: Record<string, number>
  /** Acknowledged tasks that do not exist or do not end. */
  lost: string[]
  /** Messages that have more than one task or were processed more than once. */
  double: string[]
  /** Messages that were refused but processed anyway. */
  refusedAndDone: string[]
  /** Tasks that completed without doing their work. */
  undone: string[]
  /** Number of messages for which the gateway tried another agent first. */
  moved: number
  /** Number of runs that a kill interrupted and that started again. */
  restarted: number
}

const askedAtOnce = 4
/** Time without progress that counts as a standstill. */
const patienceMs = 120_000

/** Compares the acknowledged tasks with the gateway's lists and the handlers' notes. */
export async function judge(cluster: FailoverCluster, ledger: Ledger): Promise<Findings> {
  const { url, token } = cluster
  const client = new AgentClient({ url, token })
  const states = await statesOf(client, ledger.acknowledged)
  // If agents do not respond in time, the list omits and names them. The whole list is then requested again.
  const listed = await patiently(() => listedTasks(client))
  const moved = await movedOf(cluster, ledger.acknowledged)
  const ended: Record<string, number> = {}
  for (const state of states.values()) ended[state] = (ended[state] ?? 0) + 1
  return { ended, moved, ...compare(ledger, states, listed, readNotes(cluster.notes)) }
}

/** @param states of the ended tasks @param listed ids of the tasks of each message */
export function compare(
  { acknowledged, refused }: Pick<Ledger, 'acknowledged' | 'refused'>,
  states: ReadonlyMap<string, string>,
  listed: ReadonlyMap<string, readonly string[]>,
  notes: ReadonlyMap<string, readonly Note[]>,
): Omit<Findings, 'ended' | 'moved'> {
  const noted = [...notes].map(([messageId, all]) => {
    const of = (what: Note['what']) => all.filter((one) => one.what === what)
    const [begun, done] = [of('begun'), of('done')]
    return { messageId, begun: begun.length, done: done.length, tasks: new Set(all.map((one) => one.taskId)) }
  })
  const works = new Map(noted.map((one) => [one.messageId, one]))
  const twice = noted.filter(({ done, tasks }) => done > 1 || tasks.size > 1).map((one) => one.messageId)
  const twoTasks = [...listed].filter(([, tasks]) => tasks.length > 1).map(([messageId]) => messageId)
  const wasDone = (messageId: string) => (works.get(messageId)?.done ?? 0) > 0 || listed.has(messageId)
  const isUndone = (one: Acknowledged) =>
    states.get(one.taskId) === 'completed' && (works.get(one.messageId)?.done ?? 0) === 0
  return {
    lost: acknowledged.filter(({ taskId }) => !states.has(taskId)).map(({ taskId }) => taskId),
    double: [...new Set([...twice, ...twoTasks])],
    refusedAndDone: [...refused.values()].flat().filter(wasDone),
    undone: acknowledged.filter(isUndone).map(({ taskId }) => taskId),
    restarted: noted.reduce((sum, { begun, tasks }) => sum + begun - tasks.size, 0),
  }
}

/** Gets the final states of the tasks. Tasks that do not exist or do not end have no entry. */
async function statesOf(
  client: AgentClient,
  acknowledged: readonly Acknowledged[],
): Promise<Map<string, string>> {
  const states = new Map<string, string>()
  const spent = new Set<string>()
  const open = () => acknowledged.filter(({ taskId }) => !states.has(taskId) && !spent.has(taskId))
  const allEnded = async () => {
    await atOnce(open(), askedAtOnce, async ({ taskId }) => {
      try {
        const { status } = await client.get(taskId, { historyLength: 0 })
        if (isTerminal(status.state)) states.set(taskId, status.state)
      } catch (error) {
        // Other errors can be temporary.
        if (error instanceof RpcError && error.code === -32001) spent.add(taskId)
      }
    })
    return open().length === 0
  }
  await settled(allEnded, () => open().length, patienceMs)
  return states
}

/** Lists the ids of the caller's tasks at all agents, by message id. */
async function listedTasks(client: AgentClient): Promise<Map<string, string[]>> {
  const byMessage = new Map<string, string[]>()
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await client.request('tasks/list', { limit: 500, ...(cursor !== undefined && { cursor }) })
    const missing = page.headers.get('x-parley-incomplete')
    if (missing !== null) throw new Error(`tasks/list lacks the tasks of ${missing}`)
    for (const { id, history } of page.result as WireTask[]) {
      const messageId = history[0]?.message_id ?? ''
      byMessage.set(messageId, [...(byMessage.get(messageId) ?? []), id])
    }
    cursor = page.headers.get('x-next-cursor')
  }
  return byMessage
}

async function movedOf(
  { url, token }: FailoverCluster,
  acknowledged: readonly Acknowledged[],
): Promise<number> {
  let moved = 0
  const decided = acknowledged.flatMap(({ negotiationId }) => negotiationId ?? [])
  const triedFor = async (id: string) => {
    const headers = { authorization: `Bearer ${await token()}` }
    const answer = await fetch(`${url}/negotiations/${id}`, { headers })
    const { tried } = (await answer.json()) as { tried?: unknown[] }
    if (!answer.ok || tried === undefined) throw new Error(`decision ${id} cannot be read: ${answer.status}`)
    return tried.length
  }
  await atOnce(decided, askedAtOnce, async (id) => {
    if ((await patiently(() => triedFor(id))) > 1) moved += 1
  })
  return moved
}
