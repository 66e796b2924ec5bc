import { randomUUID } from 'node:crypto'
import type { ClientParams } from '@parley/wire/codecs/codec'
import { methodOf } from '@parley/wire/codecs/parley/methods'
import { writeParams } from '@parley/wire/codecs/parley/requests'
import type {
  OutgoingMessage,
  SendConfiguration,
  WireEvent,
  WireEventPage,
  WirePushConfig,
  WireResults,
  WireTask,
  WireTaskPushConfig,
} from '@parley/wire/codecs/parley/shapes'
import { isPaused, isTerminal, type TaskState } from '@parley/wire/model/task'
import { delay } from './delay.ts'
import { type FollowLimits, followStream, type Opening, resubscription } from './follow-stream.ts'
import { RpcError } from './rpc-error.ts'
import { type CallOptions, type ClientOptions, type Reply, Transport } from './transport.ts'

/**
 * Calls the methods of one agent, or of the gateway, over HTTP (spec/methods.md#method-table). Every method throws `RpcError`
 * when the server answers with an error, `ConnectionError` when it does not answer, and the reason of `signal` if that is aborted.
 */
export class AgentClient {
  /** The base address, with a trailing slash. */
  readonly url: string
  readonly #transport: Transport
  readonly #limits: Partial<FollowLimits>

  /** @param options address, credentials and limits of the client */
  constructor(options: ClientOptions & Partial<FollowLimits>) {
    this.#transport = new Transport(options)
    this.#limits = options
    this.url = this.#transport.url
  }

  /**
   * Calls any method and returns its result as received.
   * @throws RpcError when the server answers with an error, ConnectionError when it does not answer
   */
  async call(method: string, params: unknown = {}, options?: CallOptions): Promise<unknown> {
    return (await this.#transport.request(method, params, options)).result
  }

  /** Like `call`, but also returns the HTTP status and headers (`X-Next-Cursor`, `X-Agent`). */
  request(method: string, params: unknown = {}, options?: CallOptions): Promise<Reply> {
    return this.#transport.request(method, params, options)
  }

  /** Sends a message and returns its task, usually in `submitted` (spec/methods.md#messagesend). */
  send(
    message: string | OutgoingMessage,
    configuration?: SendConfiguration,
    options?: CallOptions,
  ): Promise<WireTask> {
    return this.#call('sendMessage', sendParams(message, configuration), options)
  }

  /** Returns a task with its newest `historyLength` messages, by default with all messages (spec/methods.md#tasksget). */
  get(id: string, options?: CallOptions & { historyLength?: number }): Promise<WireTask> {
    const { historyLength } = options ?? {}
    return this.#operate('getTask', { taskId: id, historyLength }, options)
  }

  /** Returns a page of the caller's tasks, newest first. See spec/methods.md#taskslist for `params`. */
  list(params: Record<string, unknown> = {}, options?: CallOptions): Promise<WireTask[]> {
    return this.#call('listTasks', params, options)
  }

  /** Cancels a task. @throws RpcError -32002 when the task has ended */
  cancel(id: string, options?: CallOptions): Promise<WireTask> {
    return this.#operate('cancelTask', { taskId: id }, options)
  }

  /** Returns a page of a task's event log, starting after event number `afterSequence` (default 0). */
  events(
    id: string,
    page: { afterSequence?: number; limit?: number } = {},
    options?: CallOptions,
  ): Promise<WireEventPage> {
    return this.#operate('listTaskEvents', { taskId: id, ...page }, options)
  }

  /** Registers a webhook for a task's future events, or replaces the webhook with the same ID. */
  setPushConfig(
    taskId: string,
    config: WirePushConfig,
    options: CallOptions & { longRunning?: boolean } = {},
  ): Promise<WireTaskPushConfig> {
    const { longRunning, ...callOptions } = options
    const params = { taskId, pushNotificationConfig: config, longRunning }
    return this.#operate('setPushConfig', params, callOptions)
  }

  /** Returns the webhook that was set last. @throws RpcError -32001 when the task has no webhook */
  getPushConfig(taskId: string, options?: CallOptions): Promise<WireTaskPushConfig> {
    return this.#operate('getPushConfig', { taskId }, options)
  }

  /** Returns a task's webhooks, newest first. */
  listPushConfigs(taskId: string, options?: CallOptions): Promise<WireTaskPushConfig[]> {
    return this.#operate('listPushConfigs', { taskId }, options)
  }

  /** Removes a webhook and returns it. Its pending deliveries are discarded. */
  deletePushConfig(taskId: string, configId: string, options?: CallOptions): Promise<WireTaskPushConfig> {
    const params = { taskId, pushNotificationConfigId: configId }
    return this.#operate('deletePushConfig', params, options)
  }

  #operate<O extends keyof ClientParams>(
    operation: O,
    params: ClientParams[O],
    options: CallOptions | undefined,
  ): Promise<WireResults[O]> {
    return this.#call(operation, writeParams(operation, params), options)
  }

  /** Does not validate the answer: the client trusts the server to return the type that the method specifies. */
  async #call<O extends keyof WireResults>(
    operation: O,
    params: object,
    options: CallOptions | undefined,
  ): Promise<WireResults[O]> {
    return (await this.call(methodOf(operation), params, options)) as WireResults[O]
  }

  /**
   * Sends a message and yields its task's events until the task ends or pauses (spec/streaming.md#frames): every numbered
   * event once and in order, and deltas as they arrive. After a lost connection the stream resumes after the last numbered
   * event; deltas sent in between are lost.
   */
  stream(
    message: string | OutgoingMessage,
    configuration?: SendConfiguration,
    options: CallOptions = {},
  ): AsyncGenerator<WireEvent> {
    const params = sendParams(message, configuration)
    return followStream(this.#transport, { method: methodOf('streamMessage'), params }, options, this.#limits)
  }

  /** Yields a task's events after event number `afterSequence`, then live events, like `stream`. */
  resubscribe(id: string, afterSequence?: number, options: CallOptions = {}): AsyncGenerator<WireEvent> {
    const opening: Opening = { ...resubscription(id, afterSequence), taskId: id, afterSequence }
    return followStream(this.#transport, opening, options, this.#limits)
  }

  /**
   * Returns the task once it has ended or reached one of `untilStates` (default: any paused state). Follows the event stream;
   * polls an agent that does not support streaming, or if `stream` is false. To set a time limit, pass a `signal`.
   */
  async wait(
    id: string,
    options: CallOptions & { untilStates?: readonly TaskState[]; stream?: boolean } = {},
  ): Promise<WireTask> {
    const { untilStates, stream = true, ...callOptions } = options
    const reached = (state: TaskState): boolean =>
      isTerminal(state) || (untilStates === undefined ? isPaused(state) : untilStates.includes(state))
    let streams = stream
    for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 2000)) {
      const task = await this.get(id, callOptions)
      if (reached(task.status.state)) return task
      if (streams) {
        const outcome = await this.#followUntil(id, reached, callOptions)
        // The task reached the state, even if it has left the state since.
        if (outcome === 'reached') return this.get(id, callOptions)
        streams = outcome !== 'no stream'
      }
      await delay(pauseMs, callOptions.signal)
    }
  }

  async #followUntil(
    id: string,
    reached: (state: TaskState) => boolean,
    options: CallOptions,
  ): Promise<'reached' | 'ended' | 'no stream'> {
    try {
      for await (const event of this.resubscribe(id, undefined, options)) {
        if (event.kind === 'status-update' && reached(event.status.state)) return 'reached'
      }
      return 'ended'
    } catch (thrown) {
      const noStream = thrown instanceof RpcError && (thrown.code === -32004 || thrown.code === -32601)
      if (!noStream) throw thrown
      return 'no stream'
    }
  }
}

function sendParams(message: string | OutgoingMessage, configuration: SendConfiguration | undefined): object {
  const {
    text,
    parts = [],
    ...rest
  }: OutgoingMessage = typeof message === 'string' ? { text: message } : message
  const all = text === undefined ? parts : [{ kind: 'text', text }, ...parts]
  return {
    message: { role: 'user', kind: 'message', messageId: randomUUID(), ...rest, parts: all },
    ...(configuration === undefined ? {} : { configuration }),
  }
}

export type * from '@parley/wire/codecs/parley/shapes'
export { ConnectionError, RpcError } from './rpc-error.ts'
