import { setTimeout as pause } from 'node:timers/promises'
import type { InputRequests, JSONRPCRequest } from '@modelcontextprotocol/server'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { isPaused, type Task } from '@parley/wire/model/task'
import { z } from 'zod'
import type { CallerCalls } from '../calls/agent-calls.ts'
import { answerOf } from './pauses.ts'

/** How long a call waits for a person, in milliseconds. */
const personMaxMs = 5 * 60_000
const [pollMs, pollMaxMs] = [200, 2000]
const prefix = 'parley:'

/** The question of a task that a client answers by a JSON-RPC response. */
const question = z.tuple([z.string().max(256), z.string().max(64), z.string().max(64)])

export interface PushedQuestion {
  task: Task
  agent: string | undefined
  requests: InputRequests
  /** Sends a request to the client on the stream of its request. */
  push: (request: JSONRPCRequest) => Promise<void>
  signal: AbortSignal
}

/**
 * The questions for clients before 2026-07-28, which receive a request and post a response. The ID of the request names
 * the task and its question, so the gateway that receives the response answers the task, and the one that sent the
 * request reads the task until it goes on.
 */
export class PushedQuestions {
  /** Called when the person dismisses a question that was sent from this process. */
  readonly #dismissed = new Map<string, () => void>()

  /** Sends the first question to the client and returns the task when it was answered, was dismissed or time is up. */
  async ask({ task, agent, requests, push, signal }: PushedQuestion, calls: CallerCalls): Promise<Task> {
    const [first] = Object.entries(requests)
    if (first === undefined) return task
    const [key, { method, params }] = first
    const id =
      prefix + Buffer.from(JSON.stringify([task.id, task.status.timestamp, key])).toString('base64url')
    const dismissed = new AbortController()
    this.#dismissed.set(id, () => dismissed.abort())
    const ends = AbortSignal.any([signal, dismissed.signal, AbortSignal.timeout(personMaxMs)])
    try {
      await push({ jsonrpc: '2.0', id, method, params: { ...params } })
      return await changed(task, () => calls.getTask({ taskId: task.id, agent }), ends)
    } finally {
      this.#dismissed.delete(id)
    }
  }

  /** Answers the task that a posted response names. Responses to questions that are no longer open are ignored. */
  async receive(body: Record<string, unknown>, calls: CallerCalls, agent: string | undefined): Promise<void> {
    const { id, result } = body
    const parsed = question.safeParse(decoded(id))
    if (!parsed.success) return
    const [taskId, timestamp, key] = parsed.data
    const task = await calls.getTask({ taskId, agent })
    const isOpen = isPaused(task.status.state) && task.status.timestamp === timestamp
    const parts = isOpen ? answerOf(task, { [key]: result }) : undefined
    if (parts === undefined) this.#dismissed.get(String(id))?.()
    else await calls.send({ agent, message: { parts, taskId } }, { waitMs: 0 })
  }
}

/** Whether the body is a response of a client to a request of this server. */
export function isResponse(body: unknown): body is Record<string, unknown> {
  return isObject(body) && body['method'] === undefined && ('result' in body || 'error' in body)
}

async function changed(task: Task, read: () => Promise<Task>, ends: AbortSignal): Promise<Task> {
  for (let waitMs = pollMs; !ends.aborted; waitMs = Math.min(waitMs * 1.2, pollMaxMs)) {
    await pause(waitMs, undefined, { signal: ends }).catch(() => {})
    const now = await read()
    const { state, timestamp } = now.status
    const isSame = timestamp === task.status.timestamp || state === 'submitted' || state === 'working'
    if (!isSame) return now
  }
  return task
}

function decoded(id: unknown): unknown {
  if (typeof id !== 'string' || !id.startsWith(prefix) || id.length > 2048) return undefined
  try {
    return JSON.parse(Buffer.from(id.slice(prefix.length), 'base64url').toString())
  } catch {
    return undefined
  }
}
