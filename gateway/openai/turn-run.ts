import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AgentCalls, CallerCalls, TaskChange } from '../calls/agent-calls.ts'
import { paymentIn } from './payment.ts'
import type { PaymentPrompts } from './payment-prompts.ts'
import { type Conversation, type Placed, placeTurn } from './place-turn.ts'
import { questionOf } from './question.ts'
import { CurrentTask, finishTurn, streamTurn, type TurnTask } from './run-turn.ts'
import { disconnection } from './send-events.ts'
import { negotiatedModel, type Turn } from './turn.ts'

/** The header that names the conversation of a chat, and in answers the context of the task. */
export const contextHeader = 'x-parley-context'
const contextMaxChars = 256

export interface TurnParts {
  calls: AgentCalls
  prompts: PaymentPrompts
  /** Returns the slug of the agent of a caller's context. */
  agentOfContext: (owner: string, contextId: string) => Promise<string | undefined>
}

/** One request of an authenticated caller with a message for an agent. */
export class TurnRun {
  readonly calls: CallerCalls
  readonly #turn: Turn
  readonly #conversation: Conversation
  readonly #prompts: PaymentPrompts
  readonly #reply: FastifyReply
  readonly #signal: AbortSignal

  constructor(
    parts: TurnParts,
    { request, reply, caller }: { request: FastifyRequest; reply: FastifyReply; caller: AuthenticatedCaller },
    turn: Turn,
    { context = contextIn(request.headers), previous }: Pick<Conversation, 'context' | 'previous'> = {},
  ) {
    this.calls = parts.calls.as(request, caller)
    this.#turn = turn
    this.#prompts = parts.prompts
    this.#reply = reply
    this.#signal = disconnection(reply)
    this.#conversation = {
      owner: caller.id,
      calls: this.calls,
      agentOf: (contextId) => parts.agentOfContext(caller.id, contextId),
      context,
      previous,
      idempotencyKey: idempotencyKeyIn(request),
      payment: paymentIn(request.headers),
      paidFor: (task) => parts.prompts.paidFor({ calls: this.calls, owner: caller.id }, task),
    }
  }

  /** Runs the turn until its task has ended or paused, or the time is up. */
  async finish(waitMs?: number): Promise<TurnTask> {
    const options = { signal: this.#signal, ...(waitMs !== undefined && { waitMs }) }
    const turn = await this.#paying((placed) => finishTurn(this.calls, placed, options))
    this.#setHeaders(turn)
    return turn
  }

  /** Starts the turn and returns its task as soon as the agent has accepted the message. */
  async start(): Promise<{ first: TurnTask; changes: AsyncIterable<TaskChange> }> {
    return this.#paying(async (placed) => {
      const iterator = streamTurn(this.calls, placed, this.#signal)[Symbol.asyncIterator]()
      const { value, done } = await iterator.next()
      if (done === true || value.kind !== 'task')
        throw new ParleyError('InvalidAgentResponse', { message: 'The agent sent no task', status: 502 })
      const agent = value.agent ?? this.#namedAgent
      const first = new CurrentTask({ task: value.task, agent, decisionId: value.decisionId }).turn
      this.#setHeaders(first)
      return { first, changes: { [Symbol.asyncIterator]: () => iterator } }
    })
  }

  /** Reads the task of a stream, which has no history. */
  async reread(turn: TurnTask): Promise<TurnTask> {
    const { task, agent, decisionId } = turn
    if (task.answersByMessage === true) return turn
    return { ...(await this.calls.findTask({ taskId: task.id, agent })), decisionId }
  }

  /** Returns the pause of a task as text, with the payment page if the task waits for a payment. */
  async question({ task, agent = this.#namedAgent }: TurnTask): Promise<string> {
    if (task.status.state !== 'payment-required') return questionOf(task)
    const { owner } = this.#conversation
    return questionOf(task, await this.#prompts.pageOf({ calls: this.calls, owner }, task, agent))
  }

  get #namedAgent(): string | undefined {
    return this.#turn.model === negotiatedModel ? undefined : this.#turn.model
  }

  /** If the message has to be paid and its caller has paid on the payment page, sends it again with that payment. */
  async #paying<Result>(run: (placed: Placed) => Promise<Result>): Promise<Result> {
    const placed = await placeTurn(this.#turn, this.#conversation)
    try {
      return await run(placed)
    } catch (error) {
      const { payment, owner } = this.#conversation
      if (!(error instanceof ParleyError) || error.status !== 402 || placed.kind !== 'message') throw error
      const agent = placed.message.agent ?? agentIn(error)
      const paid = await this.#prompts.required({ calls: this.calls, owner }, error, {
        agent,
        skillId: skillIdIn(placed.message.message.metadata),
        isRefusal: payment !== undefined,
      })
      const { message } = placed.message
      const metadata = { ...message.metadata, ...paid }
      return run({
        kind: 'message',
        message: { ...placed.message, agent, message: { ...message, metadata } },
      })
    }
  }

  #setHeaders({ task, agent, decisionId }: TurnTask): void {
    this.#reply.headers({
      'cache-control': 'no-store',
      [contextHeader]: headerText(this.#conversation.context) ?? task.contextId,
      'x-parley-task': task.id,
      ...(agent !== undefined && { 'x-agent': agent }),
      ...(decisionId !== undefined && { 'x-negotiation-id': decisionId }),
    })
  }
}

/** Returns the text if a header may have it. */
const headerText = (text: string | undefined) =>
  text !== undefined && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) ? text : undefined

/** The agent that the gateway has chosen. The body of the error comes from an agent, which could name another one. */
function agentIn({ headers }: ParleyError): string | undefined {
  const agent = headers['x-agent']
  return typeof agent === 'string' ? agent : undefined
}

/** Returns the name of the conversation. @throws ParleyError InvalidParams */
export function contextIn(headers: FastifyRequest['headers']): string | undefined {
  const name = headers[contextHeader]
  if (name === undefined || name === '') return undefined
  if (typeof name === 'string' && name.length <= contextMaxChars) return name
  const message = `must have at most ${contextMaxChars} characters`
  throw new ParleyError('InvalidParams', { data: { issues: [{ path: 'X-Parley-Context', message }] } })
}

function idempotencyKeyIn({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  return typeof key === 'string' && key !== '' ? key : undefined
}
