import { boundedText } from '@parley/kit/net/bounded-text'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import { resultIn } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { Task } from '@parley/wire/model/task'
import type { Dispatcher } from 'undici'
import { request } from 'undici'

export interface ForeignTask {
  task: Task
  /** The size of the answer. */
  bytes: number
}

export interface ForeignTasksOptions {
  gatewayUrl: string
  dispatcher?: Dispatcher
  /** Default 5 s, because the gateway may have to query its agents. */
  timeoutMs?: number
}

/** Reads other agents' tasks through the gateway with the caller's token, which is not stored. */
export class ForeignTasks {
  readonly #options: ForeignTasksOptions

  constructor(options: ForeignTasksOptions) {
    this.#options = options
  }

  /** Returns undefined if the caller has no such task or it cannot be read for any reason. */
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
          method: defaultDialect.methodOf('getTask'),
          params: defaultDialect.writeParams('getTask', { taskId, historyLength: 0 }),
        }),
        signal: AbortSignal.any([bounds.signal, AbortSignal.timeout(timeoutMs)]),
        ...(dispatcher !== undefined && { dispatcher }),
      })
      const text = await boundedText(response.body, bounds.maxBytes)
      if (response.statusCode !== 200) return undefined
      const task = defaultDialect.readTaskOutput(resultIn(jsonOf(text)))
      if (task?.id !== taskId) return undefined
      return { task, bytes: Buffer.byteLength(text) }
    } catch {
      return undefined
    }
  }
}

/** Returns the caller's Authorization header. @throws ParleyError AuthenticationRequired */
export function authorizationOf(headers: Readonly<Record<string, string | string[] | undefined>>): string {
  const { authorization } = headers
  if (typeof authorization === 'string') return authorization
  throw new ParleyError('AuthenticationRequired')
}
