import { ownsFor } from '@parley/kit/auth/caller'
import type { taskDetail } from '@parley/wire/codecs/answers/operator/tasks'
import { cleanLine } from '@parley/wire/model/clean-text'
import type { z } from 'zod'
import type { Registry } from '../../registry/registry.ts'
import { forEachLimited } from '../../routing/forwarding/agent-query.ts'
import type { UnreadAgent } from '../agent-reader.ts'
import { originOf } from '../deliveries/receiver-address.ts'
import type { CallerView } from '../view.ts'
import type { FoundTask, TaskFinder } from './find-task.ts'

export type Chain = z.output<typeof taskDetail>['chain']
type Link = FoundTask['detail']['children'][number]

export interface TaskChainOptions {
  finder: Pick<TaskFinder, 'find'>
  registry: Pick<Registry, 'find' | 'bySlug'>
}

const depthMax = 10
const tasksMax = 50
const concurrencyMax = 8
const eventsMax = 500
const chainMs = 2500
/** Webhooks and payments per task of the chain. */
const marksMax = 10
const urlMaxChars = 300
const nameMaxChars = 80

/** A task with the ID of its parent task. */
interface Node {
  found: FoundTask
  parentId: string | null
}

/** Reads the tasks of a chain over all agents, parents before children. The depth, the number and the time are limited. */
export async function readChain(
  options: TaskChainOptions,
  view: CallerView,
  start: FoundTask,
): Promise<{ chain: Chain; clockSkewMs: Record<string, number>; unread: UnreadAgent[] }> {
  const signal = AbortSignal.timeout(chainMs)
  const nodes = new Map<string, Node>()
  const unread = new Map<string, UnreadAgent>()
  const read = async (link: Link): Promise<FoundTask | undefined> => {
    if (link.task_id === undefined || nodes.has(link.task_id) || nodes.size >= tasksMax || signal.aborted)
      return undefined
    const agent = slugOf(options, link.agent)
    try {
      const answer = await options.finder.find(view, link.task_id, { agent, signal })
      for (const one of answer.found === undefined ? answer.unread : []) unread.set(one.agent, one)
      return answer.found
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'It cannot be read.'
      unread.set(agent ?? '*', { agent: agent ?? '*', reason })
      return undefined
    }
  }
  await readParents(start, nodes, read)
  let level = [...nodes.values()].map(({ found }) => found)
  for (let depth = 0; depth < depthMax && level.length > 0; depth += 1) {
    const links = level.flatMap(({ detail }) =>
      detail.children.slice(0, tasksMax).map((link) => ({ link, parentId: detail.task_id })),
    )
    level = []
    await forEachLimited(links, concurrencyMax, async ({ link, parentId }) => {
      const found = await read(link)
      if (found === undefined || nodes.has(found.detail.task_id)) return
      nodes.set(found.detail.task_id, { found, parentId })
      level.push(found)
    })
  }
  const clockSkewMs: Record<string, number> = {}
  for (const { found } of nodes.values())
    if (found.clockSkewMs !== undefined) clockSkewMs[found.entry.slug] = found.clockSkewMs
  const isOwn = (owner: string) => ownsFor({ id: view.caller }, owner)
  // Reading a task of the caller is not in the audit log, so its chain has no texts of others.
  const showsUrls = (owner: string) => isOwn(owner) || !isOwn(start.detail.owner)
  const chain = [...nodes.values()].map((node) => chained(node, showsUrls(node.found.detail.owner)))
  return { chain, clockSkewMs, unread: [...unread.values()] }
}

/** Adds the ancestors of the task and the task itself, the oldest ancestor first. */
async function readParents(
  start: FoundTask,
  nodes: Map<string, Node>,
  read: (link: Link) => Promise<FoundTask | undefined>,
): Promise<void> {
  const ancestors = [start]
  const ids = new Set([start.detail.task_id])
  for (let depth = 0; depth < depthMax; depth += 1) {
    const link = ancestors[0]?.detail.parent
    if (!link || (link.task_id !== undefined && ids.has(link.task_id))) break
    const parent = await read(link)
    if (parent === undefined) break
    ids.add(parent.detail.task_id)
    ancestors.unshift(parent)
  }
  for (const found of ancestors) {
    const { parent, task_id: id } = found.detail
    nodes.set(id, { found, parentId: parent?.task_id ?? null })
  }
}

function chained({ found: { entry, detail }, parentId }: Node, showsUrls: boolean): Chain[number] {
  const { task_id, state, created_at, updated_at, events, runs } = detail
  return {
    agent: entry.slug,
    task_id,
    parent_id: parentId,
    state,
    created_at,
    updated_at,
    events: events.slice(-eventsMax).map(({ text: _text, ...event }) => event),
    runs: runs.slice(-eventsMax),
    webhooks: webhooksOf(detail, showsUrls),
    payments: paymentsOf(detail),
  }
}

function webhooksOf({ webhooks }: FoundTask['detail'], showsUrls: boolean): Chain[number]['webhooks'] {
  const latest = webhooks.toSorted((a, b) => timeOf(b.last_attempt_at) - timeOf(a.last_attempt_at))
  return latest
    .slice(0, marksMax)
    .map(({ config_id, url, state, attempts, last_status, last_attempt_at }) => ({
      config_id: cleanLine(config_id, nameMaxChars),
      url: cleanLine(showsUrls ? url : originOf(url), urlMaxChars),
      state,
      attempts,
      last_status,
      last_attempt_at,
    }))
}

function paymentsOf({ payments }: FoundTask['detail']): Chain[number]['payments'] {
  const newest = payments.toSorted((a, b) => timeOf(b.created_at) - timeOf(a.created_at))
  return newest
    .slice(0, marksMax)
    .map(({ payment_id, state, amount, asset_name, created_at, completed_at, sandbox }) => ({
      payment_id: cleanLine(payment_id, nameMaxChars),
      state: cleanLine(state, nameMaxChars),
      amount: cleanLine(amount, nameMaxChars),
      asset_name: cleanLine(asset_name, nameMaxChars),
      created_at,
      completed_at,
      ...(sandbox && { sandbox }),
    }))
}

const timeOf = (time: string | null): number => (time === null ? 0 : Date.parse(time))

/** A link names an agent by slug, DID or ID, or by a name that only the calling agent knows. */
function slugOf({ registry }: TaskChainOptions, name: string | undefined): string | undefined {
  if (name === undefined) return undefined
  return (registry.bySlug(name) ?? registry.find(name))?.slug
}
