import { ConnectionError, RpcError } from '@parley/client/internal/client'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { z } from 'zod'

/** A protocol binding of A2A: JSON-RPC of both versions, and REST of 1.0. */
export const a2aBindings = ['jsonrpc-1.0', 'rest-1.0', 'jsonrpc-0.3'] as const
export type A2aBinding = (typeof a2aBindings)[number]

/** A task, as far as the bindings agree. */
export interface A2aTask {
  id: string
  contextId: string
  /** The state in Parley's spelling, for example `input-required`. */
  state: string
}

export interface A2aReply {
  task: A2aTask
  headers: Headers
}

export interface A2aMessage {
  text: string
  /** The same for each repetition. */
  messageId: string
  contextId?: string
  metadata?: Record<string, unknown>
  /** Whether the answer is the ended or paused task. Default: true. */
  waits?: boolean
  /** The address of a webhook, which is registered with the message. */
  webhook?: string
  /** The header `Idempotency-Key`. */
  key?: string
}

export interface A2aCallerOptions {
  binding: A2aBinding
  /** The base address of an agent or of the gateway. */
  url: string
  token: () => string | Promise<string>
  /** The deadline for an answer, or for the next frame of a stream. */
  timeoutMs: number
  /** Sends the requests. Default: `fetch`. */
  fetch?: (url: string, request: A2aRequest) => Promise<Response>
}

export interface A2aRequest {
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: string
  redirect: 'manual'
  signal: AbortSignal
}

const answeredTask = z.object({
  id: z.string(),
  contextId: z.string(),
  status: z.object({ state: z.string() }),
})
const page = z.object({ tasks: z.array(answeredTask), nextPageToken: z.string(), totalSize: z.number() })
/** The codes of JSON-RPC for the reasons that REST names. */
const codes: Record<string, number> = {
  UNAVAILABLE: -32_042,
  TASK_NOT_FOUND: -32_001,
  TASK_NOT_CANCELABLE: -32_002,
  UNSUPPORTED_OPERATION: -32_004,
  TASK_IMMUTABLE: -32_004,
}

interface Call {
  verb?: 'GET' | 'POST'
  path: string
  method: string
  /** The params of JSON-RPC, which are the body or the query of REST. */
  params: Record<string, unknown>
  query?: boolean
  headers?: Record<string, string>
}

/** A client of A2A that is written without Parley's codecs. Errors are those of `AgentClient`. */
export class A2aCaller {
  readonly #options: A2aCallerOptions
  readonly #isRest: boolean
  readonly #isOld: boolean

  constructor(options: A2aCallerOptions) {
    this.#options = options
    this.#isRest = options.binding === 'rest-1.0'
    this.#isOld = options.binding === 'jsonrpc-0.3'
  }

  /** @throws RpcError, ConnectionError */
  async send(message: A2aMessage): Promise<A2aReply> {
    const { value, headers } = await this.#ask(this.#sending('send', message))
    return { task: taskIn(value), headers }
  }

  /** Streams the answer to a message. The first frame is the task. */
  stream(message: A2aMessage): AsyncGenerator<A2aTask> {
    return this.#follow(this.#sending('stream', message))
  }

  /** Follows a task from its present state on. @throws RpcError -32004 if the task has ended */
  subscribe(id: string): AsyncGenerator<A2aTask> {
    const method = this.#isOld ? 'tasks/resubscribe' : 'SubscribeToTask'
    return this.#follow({ method, path: `/tasks/${id}:subscribe`, params: this.#isRest ? {} : { id } })
  }

  async get(id: string): Promise<A2aTask> {
    const method = this.#isOld ? 'tasks/get' : 'GetTask'
    const params = this.#isRest ? {} : { id }
    return taskIn((await this.#ask({ verb: 'GET', method, path: `/tasks/${id}`, params })).value)
  }

  async cancel(id: string): Promise<A2aTask> {
    const method = this.#isOld ? 'tasks/cancel' : 'CancelTask'
    const params = this.#isRest ? {} : { id }
    return taskIn((await this.#ask({ method, path: `/tasks/${id}:cancel`, params })).value)
  }

  /** One page of the caller's tasks. A2A 0.3 has no list. */
  async list(pageSize: number, pageToken: string): Promise<z.infer<typeof page>> {
    const params = { pageSize, ...(pageToken !== '' && { pageToken }) }
    const { value } = await this.#ask({ verb: 'GET', method: 'ListTasks', path: '/tasks', params })
    return page.parse(value)
  }

  #sending(
    how: 'send' | 'stream',
    { text, messageId, contextId, metadata, waits = true, webhook, key }: A2aMessage,
  ): Call {
    const message = {
      messageId,
      ...(this.#isOld
        ? { kind: 'message', role: 'user', parts: [{ kind: 'text', text }] }
        : { role: 'ROLE_USER', parts: [{ text }] }),
      ...(contextId !== undefined && { contextId }),
      ...(metadata !== undefined && { metadata }),
    }
    const push = this.#isOld ? 'pushNotificationConfig' : 'taskPushNotificationConfig'
    const configuration = {
      ...(this.#isOld ? { blocking: waits } : { returnImmediately: !waits }),
      ...(webhook !== undefined && { [push]: { url: webhook } }),
    }
    const names = {
      send: ['message/send', 'SendMessage'],
      stream: ['message/stream', 'SendStreamingMessage'],
    }
    return {
      method: names[how][this.#isOld ? 0 : 1] ?? '',
      path: `/message:${how}`,
      params: { message, configuration },
      ...(key !== undefined && { headers: { 'idempotency-key': key } }),
    }
  }

  async #ask(call: Call): Promise<{ value: unknown; headers: Headers }> {
    const response = await this.#open(call)
    const text = await response.text().catch((error: unknown) => this.#lost(error))
    return { value: this.#valueIn(text, response), headers: response.headers }
  }

  async *#follow(call: Call): AsyncGenerator<A2aTask> {
    const abort = new AbortController()
    const response = await this.#open(call, abort.signal)
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
      this.#valueIn(await response.text().catch((error: unknown) => this.#lost(error)), response)
      throw new Error(`${call.method} was not answered with a stream`)
    }
    let last: A2aTask | undefined
    let text = ''
    try {
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk, { stream: true })
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) {
          const data = /^data: ?(.*)$/m.exec(block)?.[1]
          if (data === undefined) continue
          last = frameIn(this.#valueIn(data, response), last)
          yield last
        }
      }
    } catch (error) {
      if (error instanceof RpcError) throw error
      this.#lost(error)
    } finally {
      abort.abort()
    }
  }

  async #open({ verb = 'POST', path, method, params, headers }: Call, stop?: AbortSignal): Promise<Response> {
    const { url, token, timeoutMs, fetch: send = fetch } = this.#options
    const base = url.replace(/\/$/, '')
    const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(stop === undefined ? [] : [stop])])
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(params)) query.set(name, String(value))
    const isGet = this.#isRest && verb === 'GET'
    const address = this.#isRest
      ? `${base}${path}${isGet && query.size > 0 ? `?${query.toString()}` : ''}`
      : `${base}/a2a/${this.#isOld ? 'v0.3' : 'v1'}`
    const body = this.#isRest ? params : { jsonrpc: '2.0', id: 1, method, params }
    const common = { authorization: `Bearer ${await token()}`, ...headers }
    const content = { 'content-type': 'application/json', 'a2a-version': this.#isOld ? '0.3' : '1.0' }
    return send(address, {
      method: isGet ? 'GET' : 'POST',
      headers: { ...common, ...content },
      redirect: 'manual',
      signal,
      ...(!isGet && { body: JSON.stringify(body) }),
    }).catch((error: unknown) => this.#lost(error))
  }

  #lost(error: unknown): never {
    throw new ConnectionError(this.#options.url, error)
  }

  /** The result of an answer or of a frame. @throws RpcError */
  #valueIn(text: string, { status, headers }: Response): unknown {
    const json = jsonIn(text)
    const failed = isObject(json) && isObject(json['error']) ? json['error'] : undefined
    if (failed === undefined && isObject(json)) return this.#isRest ? json : json['result']
    const details = [failed?.['data'], failed?.['details']].find(Array.isArray) ?? []
    const info: unknown = details.find((one) => isObject(one) && typeof one['reason'] === 'string')
    const { reason, metadata } = isObject(info) ? info : {}
    const own = Number(failed?.['code'] ?? 0)
    const code = this.#isRest ? (codes[String(reason)] ?? own) : own
    const data = isObject(metadata) ? metadata : isObject(failed?.['data']) ? failed['data'] : {}
    const message = typeof failed?.['message'] === 'string' ? failed['message'] : `HTTP ${status}: ${text}`
    // The errors of JSON-RPC have HTTP status 200 in A2A.
    throw new RpcError({ code, status: code === -32_042 ? 503 : status, message, data, headers })
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The task of a result: bare, or in the wrapper of 1.0. */
function taskIn(value: unknown): A2aTask {
  const { id, contextId, status } = answeredTask.parse(
    isObject(value) && 'task' in value ? value['task'] : value,
  )
  return { id, contextId, state: stateOf(status.state) }
}

/** The task after a frame of a stream. @throws Error if the first frame is not the task */
function frameIn(value: unknown, last: A2aTask | undefined): A2aTask {
  if (last === undefined) return taskIn(value)
  const update = isObject(value) ? (value['statusUpdate'] ?? value) : undefined
  const status = isObject(update) ? update['status'] : undefined
  const state = isObject(status) ? status['state'] : undefined
  return typeof state === 'string' ? { ...last, state: stateOf(state) } : last
}

/** A state in the spelling of Parley. */
export const stateOf = (state: string) => state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')
