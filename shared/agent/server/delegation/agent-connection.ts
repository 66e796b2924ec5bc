import { setTimeout as wait } from 'node:timers/promises'
import { type Signer, signedFetch, type TokenSource } from '@parley/client'
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

export interface SendOptions extends CallOptions {
  /** Called before the message is repeated: an earlier attempt may have created the task. */
  onRepeat?: (() => void) | undefined
}

/** Repetitions of a request after a connection failure or a temporary error, and the delay before the first one. */
const [repeatsMax, repeatDelayMs, repeatDelayMaxMs] = [6, 250, 5000]
/** The maximum size of an answer. */
const responseMaxBytes = 64 * 1024 * 1024

export interface AgentConnectionParts {
  gatewayUrl: string
  tokens: ExchangedTokens
  /** Signs requests to agents that require signatures. */
  signer: Signer
  /** The agents that have required a signature, by slug; `-` for messages to an agent that the gateway chooses. */
  requireSignatures: Set<string>
  /** The token that arrived with the task. */
  subject: string
}

/** Sends requests to agents through the gateway, with tokens for which a task's token is exchanged. */
export class AgentConnection {
  readonly #parts: AgentConnectionParts
  readonly #gatewayUrl: string
  readonly #token: TokenSource

  constructor(parts: AgentConnectionParts) {
    const { gatewayUrl, tokens, subject } = parts
    this.#parts = parts
    this.#gatewayUrl = gatewayUrl.replace(/\/+$/, '')
    this.#token = { get: () => tokens.get(subject), forget: () => tokens.forget(subject) }
  }

  /** Checks that this agent may still act for the client. @throws ExchangeRefusedError */
  async requireAuthority(): Promise<void> {
    await this.#token.get()
  }

  /** @param agent undefined: the gateway chooses one */
  async send(
    agent: string | undefined,
    params: OutgoingParams,
    { onRepeat, ...options }: SendOptions,
  ): Promise<SentMessage> {
    const { result, headers } = await this.#patiently(agent, { ...options, onRepeat }, (client) =>
      client.request(methodOf('sendMessage'), params, options),
    )
    return { result, agent: agent ?? headers.get('x-agent') ?? undefined }
  }

  /** Returns the task as received once it has ended or paused. */
  async result(agent: string, taskId: string, options: CallOptions): Promise<unknown> {
    return this.#patiently(agent, options, (client) => client.wait(taskId, options))
  }

  /** Repeats the message until the stream begins; a lost stream is resumed. */
  async stream(
    agent: string,
    { message, configuration }: OutgoingParams,
    { onRepeat, ...options }: SendOptions,
  ): Promise<{ first: IteratorResult<WireEvent>; rest: AsyncGenerator<WireEvent> }> {
    return this.#patiently(agent, { ...options, onRepeat }, async (client) => {
      const rest = client.stream(message, configuration, options)
      return { first: await rest.next(), rest }
    })
  }

  /**
   * Cancels a task, also before its message arrives: the message is refused then.
   * @param agent undefined: the gateway finds the agent that it has chosen for the message
   */
  async cancel(
    agent: string | undefined,
    { taskId, key }: { taskId: string; key: string },
    signal: AbortSignal,
  ): Promise<TaskState> {
    const options = { signal, headers: { 'idempotency-key': key } }
    const task = await this.#authorized(agent, (client) => client.cancel(taskId, options))
    return task.status.state
  }

  #client(agent: string | undefined): AgentClient {
    const path = agent === undefined ? '/' : `/agents/${encodeURIComponent(agent)}/`
    const { signer, requireSignatures } = this.#parts
    const isSigned = requireSignatures.has(agent ?? '-')
    return new AgentClient({
      url: `${this.#gatewayUrl}${path}`,
      ...(isSigned ? { fetch: signedFetch(signer, this.#token) } : { token: () => this.#token.get() }),
      responseMaxBytes,
      frameMaxChars: responseMaxBytes,
    })
  }

  async #patiently<T>(
    agent: string | undefined,
    { signal, onRepeat }: Pick<SendOptions, 'signal' | 'onRepeat'>,
    step: (client: AgentClient) => Promise<T>,
  ): Promise<T> {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await this.#authorized(agent, step)
      } catch (error) {
        if (signal?.aborted === true || repeats >= repeatsMax || !isTransient(error)) throw error
        onRepeat?.()
        const delayMs = Math.min(repeatDelayMs * 2 ** repeats, repeatDelayMaxMs)
        await wait(delayMs, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
      }
    }
  }

  /**
   * Repeats a request with a new token if the cached one was revoked while the task's own token is still valid, and with a
   * signature if the agent requires one.
   */
  async #authorized<T>(agent: string | undefined, step: (client: AgentClient) => Promise<T>): Promise<T> {
    try {
      return await step(this.#client(agent))
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      const { requireSignatures } = this.#parts
      if (error.status === 401) this.#token.forget()
      else if (error.data['reason'] === 'missing_signature_headers') requireSignatures.add(agent ?? '-')
      else throw error
      return step(this.#client(agent))
    }
  }
}

/** Whether repeating the request may help. A request loop does not end by itself. */
export function isTransient(error: unknown): boolean {
  if (error instanceof RpcError)
    return [429, 502, 503, 504].includes(error.status) && error.data['reason'] !== 'loop'
  return error instanceof ConnectionError
}
