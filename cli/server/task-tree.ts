import { type AgentClient, RpcError } from '@parley/client/internal/client'
import { type LinkedTask, readLinkedTask } from '@parley/wire/codecs/parley/links'
import { methodOf } from '@parley/wire/codecs/parley/methods'
import { writeParams } from '@parley/wire/codecs/parley/requests'
import { isTerminal, type TaskLink, type TaskState } from '@parley/wire/model/task'
import { sentenceOf } from '../terminal/faults.ts'
import { textOf } from '../terminal/task-view.ts'

/** A task of a chain of agents, with the tasks that it created. Its texts are those of agents, which may be hostile. */
export interface TaskNode {
  /** The slug of the agent, if it is known. */
  agent: string | undefined
  taskId: string
  /** Undefined if the task could not be read. */
  state?: TaskState
  /** How long the task has worked or, if it has ended, took. */
  durationMs?: number
  /** The text of the request. */
  request?: string
  /** Why the task, or a part of the tree, is not shown. */
  note?: string
  children: TaskNode[]
}

/** Limits of a tree: the agents' links may form a cycle or have any number. */
const [nodesMax, depthMax, atOnceMax] = [200, 10, 4]

/** Reads a task and the tasks below it. @throws RpcError, ConnectionError if the first task cannot be read */
export async function readTaskTree(
  clientOf: (agent: string) => AgentClient,
  root: TaskLink,
): Promise<TaskNode> {
  const walk = new TreeWalk(clientOf)
  return walk.root(root)
}

class TreeWalk {
  readonly #clientOf: (agent: string) => AgentClient
  readonly #seen = new Set<string>()
  #nodes = 0

  constructor(clientOf: (agent: string) => AgentClient) {
    this.#clientOf = clientOf
  }

  async root(link: TaskLink): Promise<TaskNode> {
    const params = writeParams('getTask', { taskId: link.taskId })
    const client = this.#clientOf(link.agent)
    const { result, headers } = await client.request(methodOf('getTask'), params)
    const task = readLinkedTask(result)
    const agent = link.agent === '-' ? (headers.get('x-agent') ?? undefined) : link.agent
    if (task === undefined)
      return { agent, taskId: link.taskId, note: 'its agent answered with something else', children: [] }
    this.#seen.add(task.id)
    this.#nodes = 1
    return this.#nodeOf(client, { agent, taskId: task.id }, task, 1)
  }

  async #child(link: TaskLink, parentId: string, depth: number): Promise<TaskNode> {
    const cut = this.#limit(link, depth)
    if (cut !== undefined) return { ...link, note: cut, children: [] }
    this.#seen.add(link.taskId)
    this.#nodes += 1
    const client = this.#clientOf(link.agent)
    try {
      const task = readLinkedTask(await client.get(link.taskId))
      if (task?.id !== link.taskId)
        return { ...link, note: 'its agent answered with something else', children: [] }
      const node = await this.#nodeOf(client, link, task, depth)
      return task.parent?.taskId === parentId ? node : { ...node, note: 'names another task as its parent' }
    } catch (thrown) {
      return { ...link, note: noteOf(thrown), children: [] }
    }
  }

  #limit({ taskId }: TaskLink, depth: number): string | undefined {
    if (this.#seen.has(taskId)) return 'shown above'
    if (depth > depthMax) return `more than ${depthMax} levels deep`
    return this.#nodes >= nodesMax ? `not read: the tree has more than ${nodesMax} tasks` : undefined
  }

  async #nodeOf(
    client: AgentClient,
    link: { agent: string | undefined; taskId: string },
    task: LinkedTask,
    depth: number,
  ): Promise<TaskNode> {
    const startedAt = await startOf(client, task.id)
    const endedAt = isTerminal(task.state) ? task.at : Date.now()
    const request = textOf(task.request, ' ')
    const children: TaskNode[] = []
    for (let at = 0; at < task.children.length; at += atOnceMax) {
      const some = task.children.slice(at, at + atOnceMax)
      children.push(...(await Promise.all(some.map((child) => this.#child(child, task.id, depth + 1)))))
    }
    return {
      ...link,
      state: task.state,
      ...(startedAt !== undefined &&
        endedAt !== undefined && { durationMs: Math.max(0, endedAt - startedAt) }),
      ...(request !== '' && { request }),
      ...(task.unreadable > 0 && { note: `${task.unreadable} more calls that cannot be shown` }),
      children,
    }
  }
}

/** When the task's first event occurred. */
async function startOf(client: AgentClient, taskId: string): Promise<number | undefined> {
  const page = await client.events(taskId, { limit: 1 }).catch(() => undefined)
  const at = Date.parse(String(page?.events?.[0]?.timestamp))
  return Number.isNaN(at) ? undefined : at
}

function noteOf(thrown: unknown): string {
  if (thrown instanceof RpcError && (thrown.status === 403 || thrown.status === 401))
    return 'you may not read it'
  if (thrown instanceof RpcError && [-32001, -32040].includes(thrown.code))
    return 'it does not exist, or you may not read it'
  return `it cannot be read: ${sentenceOf(thrown)}`
}
