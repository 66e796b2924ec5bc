import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { version } from '@parley/kit/process/version'
import type { ClientParams, Codec } from '@parley/wire/codecs/codec'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { taskIdOfKey } from '@parley/wire/model/chosen-task-id'
import { jsonOf } from '@parley/wire/model/json-text'
import { isResting, isTerminal, type TaskState } from '@parley/wire/model/task'
import type { AgentEntry, ExampleProbe } from '../../registry/entry.ts'
import { requestAgent, rpcBody } from '../forwarding/agent-query.ts'
import { type DispatcherFor, targetOf } from '../forwarding/agent-target.ts'
import type { AgentTokens } from '../forwarding/agent-tokens.ts'
import type { CallerToken } from '../forwarding/caller-token.ts'

/** The result of one example. */
export type ExampleOutcome = keyof Omit<ExampleProbe, 'revision' | 'at' | 'attempts'>

export interface ExampleSenderOptions {
  dispatcherFor: DispatcherFor
  tokens: Pick<AgentTokens, 'authorize'>
  /** The mark of this gateway in `Via`, so that a message does not return to it. */
  via: string
  /** How long the gateway waits for the result of one example. */
  timeoutMs: number
}

/** Agents may answer with files. */
const answerMaxBytes = 4 * 1024 * 1024
const cancelTimeoutMs = 5000
const [delayMinMs, delayMaxMs] = [100, 2000]
const codec: Codec = defaultDialect

const outcomeOfState: Partial<Record<TaskState, ExampleOutcome>> = {
  completed: 'completed',
  'input-required': 'inputRequired',
  'negotiation-bid-submitted': 'inputRequired',
  'auth-required': 'authRequired',
  'payment-required': 'paymentRequired',
}
const refusals = new Map<string | undefined, ExampleOutcome>([
  ['PaymentRequired', 'paymentRequired'],
  ['AuthenticationRequired', 'authRequired'],
  ['InvalidToken', 'authRequired'],
  ['TokenExpired', 'authRequired'],
  ['InsufficientPermissions', 'authRequired'],
])

/** A task at the agent, or the outcome of a message without a task. */
type Answer = { id: string; state: TaskState } | { outcome: ExampleOutcome }

/** The agent refused a call. */
class Refused extends Error {
  override readonly name = 'Refused'
  readonly outcome: ExampleOutcome

  constructor(outcome: ExampleOutcome) {
    super(outcome)
    this.outcome = outcome
  }
}

/**
 * Sends examples to agents as messages of the gateway, and waits for their tasks. Answers are read only for the state of
 * the task.
 */
export class ExampleSender {
  readonly #options: ExampleSenderOptions

  constructor(options: ExampleSenderOptions) {
    this.#options = options
  }

  /**
   * Sends one example. A task that has not ended is canceled.
   * @throws the reason of `stop`; ParleyError if the gateway may not call the agent
   */
  async send(
    entry: AgentEntry,
    text: string,
    token: CallerToken,
    stop: AbortSignal,
  ): Promise<ExampleOutcome> {
    const key = randomUUID()
    const taskId = taskIdOfKey(key)
    const target = { entry, token, key }
    // Refuses the call before anything is sent.
    await this.#authorize(entry, token)
    const deadline = AbortSignal.timeout(this.#options.timeoutMs)
    const signal = AbortSignal.any([stop, deadline])
    let known: Answer = { id: taskId, state: 'submitted' }
    let outcome: ExampleOutcome
    try {
      const contextId = randomUUID()
      const parts = [{ kind: 'text' as const, text }]
      const message = { role: 'user' as const, messageId: randomUUID(), parts, taskId, contextId }
      known = readSent(await this.#call(target, 'sendMessage', { message }, signal))
      for (let delayMs = delayMinMs; 'id' in known && !isResting(known.state); ) {
        await pause(delayMs, undefined, { signal })
        delayMs = Math.min(2 * delayMs, delayMaxMs)
        const params = { taskId: known.id, historyLength: 0 }
        known = readTask(await this.#call(target, 'getTask', params, signal), known.id)
      }
      outcome = 'outcome' in known ? known.outcome : (outcomeOfState[known.state] ?? 'failed')
    } catch (error) {
      if (stop.aborted) throw stop.reason
      outcome = deadline.aborted ? 'timedOut' : error instanceof Refused ? error.outcome : 'failed'
    }
    if ('id' in known && !isTerminal(known.state)) await this.#cancel(target, known.id, stop)
    return outcome
  }

  async #authorize(entry: AgentEntry, token: CallerToken) {
    const { dispatcherFor, tokens } = this.#options
    return tokens.authorize(targetOf(entry, '/', dispatcherFor), token)
  }

  /** Whether the task is canceled does not matter to the result. */
  async #cancel(target: CallTarget, taskId: string, stop: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(cancelTimeoutMs)])
    await this.#call(target, 'cancelTask', { taskId }, signal).catch(() => {})
  }

  /** @returns the result of the call. @throws Refused, errors of the connection */
  async #call<O extends 'sendMessage' | 'getTask' | 'cancelTask'>(
    { entry, token, key }: CallTarget,
    operation: O,
    params: ClientParams[O],
    signal: AbortSignal,
  ): Promise<unknown> {
    const target = await this.#authorize(entry, token)
    const { head, bytes } = await requestAgent(target, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': `parley-gateway/${version} (tries the examples of new agents)`,
        'x-request-id': randomUUID(),
        'idempotency-key': key,
        via: this.#options.via,
      },
      body: rpcBody(codec.methodOf(operation), codec.writeParams(operation, params)),
      signal,
      answerMaxBytes,
    })
    const { status } = head
    if (status === 402) throw new Refused('paymentRequired')
    if (status === 401 || status === 403) throw new Refused('authRequired')
    const answer = jsonOf(bytes.toString('utf8'))
    const error = codec.readError(answer)
    if (error !== undefined || status !== 200 || !isObject(answer))
      throw new Refused(refusals.get(error?.error) ?? 'failed')
    return answer['result']
  }
}

interface CallTarget {
  entry: AgentEntry
  token: CallerToken
  /** The idempotency key from which the id of the task is derived, so that it can be canceled before it exists. */
  key: string
}

function readSent(result: unknown): Answer {
  const answer = codec.readSendResult(result)
  if (answer === undefined) throw new Refused('failed')
  if (answer.kind === 'message') return { outcome: 'completed' }
  const { id, status } = answer.task
  return { id, state: status.state }
}

function readTask(result: unknown, id: string): Answer {
  const task = codec.readTask(result)
  if (task?.id !== id) throw new Refused('failed')
  return { id, state: task.status.state }
}
