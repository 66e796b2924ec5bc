import { boundedText } from '@parley/kit/net/bounded-text'
import { part, uuid } from '@parley/wire/codecs/parley/message'
import { wireObject } from '@parley/wire/codecs/parley/spelling'
import { ParleyError } from '@parley/wire/errors'
import { type Task, taskStates } from '@parley/wire/model/task'
import type { Dispatcher } from 'undici'
import { request } from 'undici'
import { z } from 'zod'

/** A task as `tasks/get` tells it; what a reference needs of it. */
const told = wireObject({
  id: uuid,
  contextId: z.string().max(128),
  status: z.object({ state: z.enum(taskStates), timestamp: z.string().max(64) }),
  artifacts: z
    .array(
      wireObject({
        artifactId: z.string().max(128),
        name: z.string().max(1024).default(''),
        parts: z.array(part).max(1000),
      }),
    )
    .max(1000)
    .default([]),
})

export interface ForeignTask {
  task: Task
  /** Of the answer. */
  bytes: number
}

export interface ForeignTasksOptions {
  gatewayUrl: string
  dispatcher?: Dispatcher
  /** Default 5 s: the gateway may have to ask its agents. */
  timeoutMs?: number
}

/** Tasks of other agents, read through the gateway with the caller's own token, which is used for that and not kept. */
export class ForeignTasks {
  readonly #options: ForeignTasksOptions

  constructor(options: ForeignTasksOptions) {
    this.#options = options
  }

  /** Undefined: the caller has none of this id, whatever the reason that it cannot be read. */
  async read(
    taskId: string,
    authorization: string,
    bounds: { maxBytes: number; signal: AbortSignal },
  ): Promise<ForeignTask | undefined> {
    const { gatewayUrl, dispatcher, timeoutMs = 5000 } = this.#options
    try {
      const response = await request(`${gatewayUrl.replace(/\/+$/, '')}/`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: taskId,
          method: 'tasks/get',
          params: { task_id: taskId, history_length: 0 },
        }),
        signal: AbortSignal.any([bounds.signal, AbortSignal.timeout(timeoutMs)]),
        ...(dispatcher !== undefined && { dispatcher }),
      })
      const text = await boundedText(response.body, bounds.maxBytes)
      if (response.statusCode !== 200) return undefined
      const task = told.parse((JSON.parse(text) as { result?: unknown }).result)
      if (task.id !== taskId) return undefined
      return { task: { ...task, history: [] } as Task, bytes: Buffer.byteLength(text) }
    } catch {
      return undefined
    }
  }
}

/** What the caller's token came in. @throws ParleyError AuthenticationRequired */
export function authorizationOf(headers: Readonly<Record<string, string | string[] | undefined>>): string {
  const { authorization } = headers
  if (typeof authorization === 'string') return authorization
  throw new ParleyError('AuthenticationRequired')
}
