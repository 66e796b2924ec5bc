import { z } from 'zod'
import type { Part } from '../../model/task.ts'
import { type TaskLink, type TaskState, taskStates } from '../../model/task.ts'
import { readParts } from './answers.ts'
import { uuid } from './message.ts'
import { wireObject } from './spelling.ts'

/** What a client reads of a task that belongs to a chain of agents. */
export interface LinkedTask {
  id: string
  state: TaskState
  /** When the state began, in milliseconds since 1970. */
  at: number | undefined
  /** The parts of the first message. */
  request: Part[]
  parent: TaskLink | undefined
  /** Links with the slug of an agent and the ID of a task. */
  children: TaskLink[]
  /** The number of links that are malformed or above the limit. */
  unreadable: number
}

const childrenMax = 100
const slug = z.string().regex(/^[a-z0-9][a-z0-9-]{0,127}$/)
const link = wireObject({ agent: slug, taskId: uuid })
const parentLink = wireObject({ agent: z.string().max(512), taskId: uuid })

const linkedTask = wireObject({
  id: uuid,
  status: z.object({ state: z.enum(taskStates), timestamp: z.string().max(64).catch('') }),
  history: z.array(z.unknown()).catch([]),
  metadata: wireObject({
    parent: parentLink.optional().catch(undefined),
    children: z.array(z.unknown()).catch([]).optional(),
  })
    .optional()
    .catch(undefined),
})

/** Reads a task of any agent, whose values are data of that agent. Undefined if the JSON is not a task. */
export function readLinkedTask(json: unknown): LinkedTask | undefined {
  const read = linkedTask.safeParse(json).data
  if (read === undefined) return undefined
  const { id, status, history, metadata } = read
  const listed = metadata?.children ?? []
  const children = listed.slice(0, childrenMax).flatMap((one) => link.safeParse(one).data ?? [])
  const at = Date.parse(status.timestamp)
  return {
    id,
    state: status.state,
    at: Number.isNaN(at) ? undefined : at,
    request: readParts(z.object({ parts: z.unknown() }).safeParse(history[0]).data?.parts),
    parent: metadata?.parent,
    children,
    unreadable: listed.length - children.length,
  }
}
