import { boundedText } from '@parley/kit/net/bounded-text'
import { request } from '@parley/kit/net/http-client'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import { resultIn } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { Task } from '@parley/wire/model/task'
import type { Dispatcher } from 'undici'

export interface ForeignTask {
  task: Task
  /** The size of the answer. */
  bytes: number
}

export interface ForeignTasksOptions {
  gatewayUrl: string
  /** This agent's own token for the gateway. Without it, only tasks of direct callers can be read. */
  ownToken?: (() => Promise<string>) | undefined
  dispatcher?: Dispatcher
  /** Default 5 s, because the gateway may have to query its agents. */
  timeoutMs?: number
}

/** The header with which the gateway lets this agent read the tasks that a message refers to. Only the gateway can read it. */
const grantHeader = 'x-parley-references'

/**
 * Reads other agents' tasks through the gateway: with this agent's own token and the gateway's grant if the message came
 * through the gateway, else with the caller's token, which is not stored.
 */
export class ForeignTasks {
  readonly #options: ForeignTasksOptions

  constructor(options: ForeignTasksOptions) {
    this.#options = options
  }

  /** Returns undefined if the caller has no such task or it cannot be read for any reason. */
  async read(
    taskId: string,
    headers: RequestHeaders,
    bounds: { maxBytes: number; signal: AbortSignal },
  ): Promise<ForeignTask | undefined> {
    const { gatewayUrl, dispatcher, timeoutMs = 5000 } = this.#options
    try {
      const response = await request(`${gatewayUrl.replace(/\/+$/, '')}/`, {
        method: 'POST',
        headers: {
          ...(await this.#credentials(headers)),
          'content-type': 'application/json',
          accept: 'application/json',
        },
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

  async #credentials(headers: RequestHeaders): Promise<Record<string, string>> {
    const { ownToken } = this.#options
    const grant = headers[grantHeader]
    if (typeof grant !== 'string' || ownToken === undefined)
      return { authorization: authorizationOf(headers) }
    return { authorization: `Bearer ${await ownToken()}`, [grantHeader]: grant }
  }
}

type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Returns the caller's Authorization header. @throws ParleyError AuthenticationRequired */
export function authorizationOf(headers: RequestHeaders): string {
  const { authorization } = headers
  if (typeof authorization === 'string') return authorization
  throw new ParleyError('AuthenticationRequired')
}
