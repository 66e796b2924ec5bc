import { randomUUID } from 'node:crypto'
import { type AgentClient, ConnectionError, RpcError } from '@parley/client/internal/client'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { A2aCaller, type A2aMessage, type A2aTask, a2aBindings, stateOf } from '../testing/a2a-caller.ts'
import { requestTimeoutMs } from './clients.ts'
import type { Acknowledged, Loading } from './load.ts'
import { pick } from './plan.ts'
import { type ClientRun, untilDone } from './retry.ts'

const runningStates: readonly string[] = ['submitted', 'working']

/** Sends one message in one of the bindings of A2A, most of them by calls that wait for the task. */
export async function a2aOrder(loading: Loading, kind: string): Promise<Acknowledged[]> {
  const { client, random, receiverUrl, tally } = loading
  const binding = pick(a2aBindings, random())
  const at = ({ url }: AgentClient) =>
    new A2aCaller({ binding, url, token: () => client.token(url), timeoutMs: requestTimeoutMs })
  const key = randomUUID()
  const text = `${wordOf(kind)} order ${key}`
  const webhook = random() < 0.5
  const message: A2aMessage = {
    text,
    messageId: `message of ${key}`,
    key,
    contextId: `context of ${key}`,
    metadata: { skill_id: 'order' },
    waits: kind !== 'hang',
    ...(webhook && { webhook: receiverUrl }),
  }
  const send = (way?: () => AgentClient) =>
    untilDone(
      loading,
      async (to) => {
        if (kind === 'stream') return first(at(to).stream(message), to)
        const { task } = await at(to).send(message)
        if (kind !== 'hang' && runningStates.includes(task.state)) {
          const unclear = `${binding}: a call that waits was answered with a task in ${task.state}`
          tally.unclear.set(unclear, (tally.unclear.get(unclear) ?? 0) + 1)
        }
        return task
      },
      way,
    )
  const both = () => client.at.map(({ named, routed }) => send(() => (random() < 0.5 ? named : routed)))
  const tasks = kind === 'twice' ? await Promise.all(both()) : [await send()]
  const ids = [...new Set(tasks.flatMap((task) => task?.id ?? []))]
  const [id] = ids
  if (id !== undefined && kind === 'hang') await untilDone(loading, (to) => at(to).cancel(id))
  if (id !== undefined && kind === 'stream') await untilDone(loading, (to) => ended(at(to), id, to))
  const a2a = binding === 'jsonrpc-0.3' ? '0.3' : '1.0'
  return ids.map((taskId) => ({ taskId, text, webhook, paid: false, txHash: undefined, a2a }))
}

const wordOf = (kind: string) => (kind === 'twice' ? 'soon' : kind === 'stream' ? 'slow' : kind)

/** The first frame of a stream, which is then closed. */
async function first(frames: AsyncGenerator<A2aTask>, { url }: AgentClient): Promise<A2aTask> {
  for await (const task of frames) return task
  throw new ConnectionError(url, new Error('the stream ended without a frame'))
}

/** Follows a task at any gateway until it has ended. */
async function ended(caller: A2aCaller, id: string, { url }: AgentClient): Promise<void> {
  try {
    let state = ''
    for await (const task of caller.subscribe(id)) state = task.state
    if (!runningStates.includes(state)) return
  } catch (error) {
    if (!(error instanceof RpcError) || error.code !== -32_004) throw error
    if (!runningStates.includes((await caller.get(id)).state)) return
  }
  throw new ConnectionError(url, new Error('the stream ended before its task'))
}

const pageSize = 7

/** Reads the list of A2A page by page, each page at another gateway, and compares it with the ids of all tasks. */
export async function a2aListFaults(run: ClientRun, taskIds: readonly string[]): Promise<string[]> {
  const { client } = run
  const binding = pick(['jsonrpc-1.0', 'rest-1.0'] as const, run.random())
  const listed: string[] = []
  const totals = new Set<number>()
  let pageToken = ''
  for (let number = 0; number === 0 || pageToken !== ''; number += 1) {
    const token = pageToken
    const { named } = pick(client.at, (number % client.at.length) / client.at.length)
    const at = new A2aCaller({
      binding,
      url: named.url,
      token: () => client.token(named.url),
      timeoutMs: requestTimeoutMs,
    })
    const page = await untilDone(run, () => at.list(pageSize, token))
    if (page === undefined) throw new Error('ListTasks was refused')
    listed.push(...page.tasks.map(({ id }) => id))
    totals.add(page.totalSize)
    pageToken = page.nextPageToken
  }
  const known = new Set(listed)
  return [
    ...taskIds.filter((id) => !known.has(id)).map((id) => `${id} is not listed`),
    ...(known.size === listed.length ? [] : [`${listed.length - known.size} tasks are listed twice`]),
    ...(totals.size === 1 && totals.has(taskIds.length) ? [] : [`totals: ${[...totals].join()}`]),
  ]
}

/** The task of a webhook delivery in a dialect of A2A, and what the event changes: the state or an artifact. */
export function a2aDelivery(body: unknown): { task: string; id: string } {
  const whole: Record<string, unknown> = isObject(body) ? body : {}
  const inner = [whole['statusUpdate'], whole['artifactUpdate'], whole['task'], whole].find(isObject) ?? {}
  const { taskId, id, status, artifact } = inner
  const state = isObject(status) ? stateOf(String(status['state'])) : undefined
  const changed = isObject(artifact) ? `artifact ${String(artifact['artifactId'])}` : ''
  return { task: String(taskId ?? id), id: state ?? changed }
}
