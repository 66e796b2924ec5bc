import { setTimeout as wait } from 'node:timers/promises'
import { AgentClient } from '@parley/client/internal/client'
import { ConnectionError, RpcError } from '@parley/client/internal/rpc-error'
import type { CallOptions } from '@parley/client/internal/transport'
import { methodOf } from '@parley/wire/codecs/parley/methods'
import type { OutgoingMessage, SendConfiguration, WireEvent } from '@parley/wire/codecs/parley/shapes'
import type { TaskState } from '@parley/wire/model/task'
import type { ExchangedTokens } from './exchanged-tokens.ts'

/** The params of a message, which are the same each time a call is repeated. */
export interface OutgoingParams {
  message: OutgoingMessage & { kind: 'message'; messageId: string }
  configuration: SendConfiguration
}

export interface SentMessage {
  result: unknown
  /** The slug of the agent that took the message, if the gateway chose it. */
  agent: string | undefined
}

/** Repetitions of a request after a connection failure or a temporary error, and the delay before the first one. */
const [repeatsMax, repeatDelayMs, repeatDelayMaxMs] = [6, 250, 5000]
/** The maximum size of an answer. */
const responseMaxBytes = 64 * 1024 * 1024

/** Sends requests to agents through the gateway, with tokens for which a task's token is exchanged. */
export class AgentConnection {
  readonly #gatewayUrl: string
  readonly #tokens: ExchangedTokens
  readonly #subject: string

  /** @param subject the token that arrived with the task */
  constructor(gatewayUrl: string, tokens: ExchangedTokens, subject: string) {
    this.#gatewayUrl = gatewayUrl.replace(/\/+$/, '')
    this.#tokens = tokens
    this.#subject = subject
  }

  /** Checks that this agent may still act for the client. @throws ExchangeRefusedError */
  async requireAuthority(): Promise<void> {
    await this.#tokens.get(this.#subject)
  }

  /** @param agent undefined: the gateway chooses one */
  async send(agent: string | undefined, params: OutgoingParams, options: CallOptions): Promise<SentMessage> {
    const { result, headers } = await this.#patiently(agent, options.signal, (client) =>
      client.request(methodOf('sendMessage'), params, options),
    )
    return { result, agent: agent ?? headers.get('x-agent') ?? undefined }
  }

  /** Returns the task as received once it has ended or paused. */
  async result(agent: string, taskId: string, options: CallOptions): Promise<unknown> {
    return this.#patiently(agent, options.signal, (client) => client.wait(taskId, options))
  }

  /** Repeats the message until the stream begins; a lost stream is resumed. */
  async stream(
    agent: string,
    { message, configuration }: OutgoingParams,
    options: CallOptions,
  ): Promise<{ first: IteratorResult<WireEvent>; rest: AsyncGenerator<WireEvent> }> {
    return this.#patiently(agent, options.signal, async (client) => {
      const rest = client.stream(message, configuration, options)
      return { first: await rest.next(), rest }
    })
  }

  async cancel(agent: string, taskId: string, signal: AbortSignal): Promise<TaskState> {
    const client = this.#client(agent)
    const task = await this.#withFreshToken(() => client.cancel(taskId, { signal }))
    return task.status.state
  }

  #client(agent: string | undefined): AgentClient {
    const path = agent === undefined ? '/' : `/agents/${encodeURIComponent(agent)}/`
    return new AgentClient({
      url: `${this.#gatewayUrl}${path}`,
      token: () => this.#tokens.get(this.#subject),
      responseMaxBytes,
    })
  }

  async #patiently<T>(
    agent: string | undefined,
    signal: AbortSignal | undefined,
    step: (client: AgentClient) => Promise<T>,
  ): Promise<T> {
    const client = this.#client(agent)
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await this.#withFreshToken(() => step(client))
      } catch (error) {
        if (signal?.aborted === true || repeats >= repeatsMax || !isTransient(error)) throw error
        const delayMs = Math.min(repeatDelayMs * 2 ** repeats, repeatDelayMaxMs)
        await wait(delayMs, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
      }
    }
  }

  /** A cached token may have been revoked while the task's own token is still valid. */
  async #withFreshToken<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step()
    } catch (error) {
      if (!(error instanceof RpcError) || error.status !== 401) throw error
      this.#tokens.forget(this.#subject)
      return step()
    }
  }
}

/** Whether repeating the request may help. A request loop does not end by itself. */
export function isTransient(error: unknown): boolean {
  if (error instanceof RpcError)
    return [429, 502, 503, 504].includes(error.status) && error.data['reason'] !== 'loop'
  return error instanceof ConnectionError
}
