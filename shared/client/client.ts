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
  WireTask,
  WireTaskPushConfig,
} from '@parley/wire/codecs/parley/shapes'
import { isPaused, isTerminal, type TaskState } from '@parley/wire/model/task'
import { delay } from './delay.ts'
import { type FollowLimits, followStream, type Opening, resubscription } from './follow-stream.ts'
import { RpcError } from './rpc-error.ts'
import { type CallOptions, type ClientOptions, type Reply, Transport } from './transport.ts'

/** A caller of one agent, or of the gateway: the methods of spec/methods.md#method-table over HTTP. */
export class AgentClient {
  readonly url: string
  readonly #transport: Transport
  readonly #limits: Partial<FollowLimits>

  constructor(options: ClientOptions & Partial<FollowLimits>) {
    this.#transport = new Transport(options)
    this.#limits = options
    this.url = this.#transport.url
  }

  /**
   * Any method, its result.
   * @throws RpcError when the server answers with an error, ConnectionError when it does not answer
   */
  async call(method: string, params: unknown = {}, options?: CallOptions): Promise<unknown> {
    return (await this.#transport.request(method, params, options)).result
  }

  /** As `call`, with status and headers (`X-Next-Cursor`, `X-Agent`) of the answer. */
  request(method: string, params: unknown = {}, options?: CallOptions): Promise<Reply> {
    return this.#transport.request(method, params, options)
  }

  async send(
    message: string | OutgoingMessage,
    configuration?: SendConfiguration,
    options?: CallOptions,
  ): Promise<WireTask> {
    return (await this.call(methodOf('sendMessage'), sendParams(message, configuration), options)) as WireTask
  }

  async get(id: string, options?: CallOptions & { historyLength?: number }): Promise<WireTask> {
    const { historyLength } = options ?? {}
    return (await this.#operate('getTask', { taskId: id, historyLength }, options)) as WireTask
  }

  async list(params: Record<string, unknown> = {}, options?: CallOptions): Promise<WireTask[]> {
    return (await this.call(methodOf('listTasks'), params, options)) as WireTask[]
  }

  async cancel(id: string, options?: CallOptions): Promise<WireTask> {
    return (await this.#operate('cancelTask', { taskId: id }, options)) as WireTask
  }

  /** `tasks/events`: a page of the task's event log, from the number on. */
  async events(
    id: string,
    page: { afterSequence?: number; limit?: number } = {},
    options?: CallOptions,
  ): Promise<WireEventPage> {
    return (await this.#operate('listTaskEvents', { taskId: id, ...page }, options)) as WireEventPage
  }

  /** Registers a webhook for the events to come, or replaces that of the same id. */
  setPushConfig(
    taskId: string,
    config: WirePushConfig,
    options: CallOptions & { longRunning?: boolean } = {},
  ): Promise<WireTaskPushConfig> {
    const { longRunning, ...callOptions } = options
    const params = { taskId, pushNotificationConfig: config, longRunning }
    return this.#operate('setPushConfig', params, callOptions) as Promise<WireTaskPushConfig>
  }

  /** The webhook that was set last. @throws RpcError -32001 when the task has none */
  getPushConfig(taskId: string, options?: CallOptions): Promise<WireTaskPushConfig> {
    return this.#operate('getPushConfig', { taskId }, options) as Promise<WireTaskPushConfig>
  }

  /** The one set last first. */
  listPushConfigs(taskId: string, options?: CallOptions): Promise<WireTaskPushConfig[]> {
    return this.#operate('listPushConfigs', { taskId }, options) as Promise<WireTaskPushConfig[]>
  }

  /** What waits for it is not sent. */
  deletePushConfig(taskId: string, configId: string, options?: CallOptions): Promise<WireTaskPushConfig> {
    const params = { taskId, pushNotificationConfigId: configId }
    return this.#operate('deletePushConfig', params, options) as Promise<WireTaskPushConfig>
  }

  #operate<O extends keyof ClientParams>(
    operation: O,
    params: ClientParams[O],
    options: CallOptions | undefined,
  ): Promise<unknown> {
    return this.call(methodOf(operation), writeParams(operation, params), options)
  }

  /**
   * `message/stream`: every numbered event once, in order, and the deltas as they come, until the task ends or pauses.
   * A lost connection is taken up again with `tasks/resubscribe`; deltas of the gap are lost, numbered events are not.
   */
  stream(
    message: string | OutgoingMessage,
    configuration?: SendConfiguration,
    options: CallOptions = {},
  ): AsyncGenerator<WireEvent> {
    const params = sendParams(message, configuration)
    return followStream(this.#transport, { method: methodOf('streamMessage'), params }, options, this.#limits)
  }

  /** The events of a task after the numbered one, then live, as `stream`. */
  resubscribe(id: string, afterSequence?: number, options: CallOptions = {}): AsyncGenerator<WireEvent> {
    const opening: Opening = { ...resubscription(id, afterSequence), taskId: id, afterSequence }
    return followStream(this.#transport, opening, options, this.#limits)
  }

  /**
   * The task once it has ended or is in one of `untilStates` (default: any pause). Follows the stream, or asks
   * again and again where the agent does not stream (`stream: false`: without trying). Without an end of its own: give
   * a `signal`.
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
        const told = await this.#followUntil(id, reached, callOptions)
        // The state was there, even if the task has moved on since.
        if (told === 'reached') return this.get(id, callOptions)
        streams = told !== 'no stream'
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
