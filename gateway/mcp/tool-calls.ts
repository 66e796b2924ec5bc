import {
  type CallToolResult,
  type JSONRPCRequest,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
} from '@modelcontextprotocol/server'
import { parseParams } from '@parley/wire/codecs/parley/params'
import type { PaymentPurpose } from '@parley/wire/codecs/parley/payments'
import { ParleyError } from '@parley/wire/errors'
import type { PaymentSession } from '@parley/wire/model/payment'
import { isPaused, isTerminal, type JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import type { AgentMessage, SentTask } from '../calls/agent-calls.ts'
import { refusalResult } from './call-errors.ts'
import { type ClientSupport, clientSupport, type Exchange, type RequestContext } from './exchange.ts'
import { answerOf, type Question, questionOf } from './pauses.ts'
import {
  payingParts,
  paymentIn,
  paymentRequiredResult,
  paymentTerms,
  taskOfPayment,
  termsIn,
} from './payments.ts'
import type { PushedQuestions } from './pushed-questions.ts'
import { type RequestState, readRequestState, requestStateOf } from './request-state.ts'
import { createdTask } from './task-handles.ts'
import {
  type AgentTask,
  metaOf,
  questionResult,
  resultOfEndedTask,
  resultOfRunningTask,
} from './task-results.ts'
import type { SkillTool, ToolCatalog } from './tool-catalog.ts'
import {
  completedMessage,
  messageMetadata,
  readAnswer,
  readSkillArguments,
  readTextArguments,
  type ToolMessage,
} from './tool-messages.ts'
import type { GatewayTool } from './tool-names.ts'
import { isGatewayTool } from './tool-names.ts'
import { watchTask } from './watch-task.ts'

export interface Waits {
  /** How long a call waits for its task if the client can follow a task handle, in milliseconds. */
  taskAfterMs: number
  /** How long a call of another client waits, in milliseconds. */
  answerAfterMs: number
}

export interface ToolCallsOptions extends Waits {
  catalog: ToolCatalog
  questions: PushedQuestions
  findAgent: (exchange: Exchange, args: JsonObject) => Promise<CallToolResult>
}

const callParams = z.looseObject({
  name: z.string().max(256),
  arguments: z.record(z.string(), z.json()).default({}),
  _meta: z.looseObject({}).optional(),
})
type CallParams = z.output<typeof callParams>

const taskArguments = z.strictObject({ task_id: z.string().min(1).max(256) })

/** One call of a tool. */
interface ToolCall {
  exchange: Exchange
  params: CallParams
  context: RequestContext
  client: ClientSupport
}

/** Runs tools by calls of agents (spec/mcp.md#tools). */
export class ToolCalls {
  readonly #options: ToolCallsOptions

  constructor(options: ToolCallsOptions) {
    this.#options = options
  }

  /** @throws ProtocolError for an unknown tool and malformed requests */
  async call(exchange: Exchange, given: unknown, context: RequestContext): Promise<Result> {
    const params = parseParams(callParams, given)
    const call = { exchange, params, context, client: clientSupport(context, exchange) }
    try {
      return await this.#run(call)
    } catch (thrown) {
      if (!(thrown instanceof ParleyError)) throw thrown
      const terms = termsIn(thrown)
      if (terms === undefined) return refusalResult(thrown)
      const tool = this.#skillOf(call)
      const agent = tool?.slug ?? exchange.agent
      return paymentRequiredResult({
        terms,
        session: await sessionFor(exchange, agent, { skillId: tool?.skillId }),
      })
    }
  }

  async #run(call: ToolCall): Promise<Result> {
    const { exchange, params, context } = call
    const state = readRequestState(context.mcpReq.requestState(), exchange.caller.id)
    // The answer to a question belongs to its task, even if the tool has been renamed or removed meanwhile.
    if (state !== undefined) return this.#answerPause(call, state)
    const { name } = params
    if (isGatewayTool(name) && (exchange.agent === undefined || !forAllAgents.has(name)))
      return this.#callGatewayTool(call, name)
    const tool = this.#skillOf(call)
    if (tool === undefined) throw unknownTool(name)
    return this.#send(call, readSkillArguments(tool, params.arguments), tool)
  }

  #skillOf({ exchange, params }: Pick<ToolCall, 'exchange' | 'params'>): SkillTool | undefined {
    return this.#options.catalog.find(exchange.directory, exchange.agent, params.name)
  }

  async #callGatewayTool(call: ToolCall, name: GatewayTool): Promise<Result> {
    const { exchange, params } = call
    const { calls, agent } = exchange
    if (name === 'find_agent') return this.#options.findAgent(exchange, params.arguments)
    if (name === 'ask_best_agent') return this.#send(call, readTextArguments(params.arguments))
    if (name === 'answer_task') return this.#send(call, readAnswer(params.arguments))
    const { task_id: taskId } = parseParams(taskArguments, params.arguments)
    if (name === 'get_task') return this.#present(call, await calls.findTask({ taskId, agent }))
    const task = await calls.cancelTask({ taskId, agent })
    return { content: [{ type: 'text', text: `The task is ${task.status.state}.` }] }
  }

  async #send(call: ToolCall, message: ToolMessage, tool?: SkillTool): Promise<Result> {
    const { exchange, context } = call
    const payment = paymentIn(context.mcpReq._meta) ?? paymentIn(call.params._meta)
    const paidTask = taskOfPayment(payment)
    const continues = { ...message, ...(paidTask !== undefined && { taskId: paidTask }) }
    const sent = await this.#deliver(call, {
      agent: tool?.slug ?? exchange.agent,
      message: await completedMessage(continues, exchange.calls, messageMetadata(tool?.skillId, payment)),
    })
    return this.#present(call, sent)
  }

  /** Sends the message and waits for the task, with progress notifications if the client requests them. */
  async #deliver({ exchange, context, client }: ToolCall, message: AgentMessage): Promise<SentTask> {
    const { taskAfterMs, answerAfterMs } = this.#options
    const { signal, _meta } = context.mcpReq
    const waitMs = client.tasks ? taskAfterMs : answerAfterMs
    const progressToken = _meta?.progressToken
    if (progressToken === undefined || client.tasks) return exchange.calls.send(message, { waitMs, signal })
    const notify = (progress: number, text: string) =>
      context.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, message: text },
      })
    return watchTask(exchange.calls, message, { waitMs, signal, notify })
  }

  /** Answers the question of a paused task with the responses of a repeated request. */
  async #answerPause(call: ToolCall, { taskId, pausedAt }: RequestState): Promise<Result> {
    const { exchange, context } = call
    const { calls, agent } = exchange
    const known = await calls.findTask({ taskId, agent })
    const { task } = known
    const payment = paymentIn(context.mcpReq._meta)
    // An answer to an earlier question is not an answer to this one.
    const isOpen = isPaused(task.status.state) && task.status.timestamp === pausedAt
    const parts = isOpen ? answerOf(task, context.mcpReq.inputResponses ?? {}) : undefined
    if (parts === undefined && payment === undefined) return this.#present(call, known)
    const metadata = messageMetadata(undefined, payment)
    const message = { parts: parts ?? payingParts, taskId, ...(payment !== undefined && { metadata }) }
    const sent = await this.#deliver(call, { agent: known.agent, message })
    return this.#present(call, sent)
  }

  /** Returns what a call answers for the state of its task. */
  async #present(call: ToolCall, sent: AgentTask): Promise<Result> {
    const { exchange, client } = call
    const { task } = sent
    const { state } = task.status
    if (isTerminal(state)) return resultOfEndedTask(sent)
    const terms = state === 'payment-required' ? await paymentTerms(sent, exchange.calls) : undefined
    if (terms !== undefined) {
      const session = await sessionFor(exchange, sent.agent, { taskId: task.id })
      return paymentRequiredResult({ terms, taskId: task.id, session, meta: metaOf(sent) })
    }
    if (!isPaused(state)) return client.tasks ? createdTask(task) : resultOfRunningTask(sent)
    const { text, requests } = questionOf(task, client.elicitation)
    if (Object.keys(requests).length === 0) return questionResult(sent, text)
    if (client.tasks) return createdTask(task)
    if (!client.isModern) return this.#pushQuestion(call, sent, { text, requests })
    return {
      resultType: 'input_required',
      inputRequests: requests,
      requestState: requestStateOf({ taskId: task.id, pausedAt: task.status.timestamp }, exchange.caller.id),
    }
  }

  /** Lets a client before 2026-07-28 answer during the call. */
  async #pushQuestion(call: ToolCall, sent: AgentTask, { text, requests }: Question): Promise<Result> {
    const { exchange, context } = call
    const { calls, agent } = exchange
    const push = (request: JSONRPCRequest) => exchange.push(request, context)
    const { signal } = context.mcpReq
    const { questions } = this.#options
    const task = await questions.ask({ task: sent.task, agent, requests, push, signal }, calls)
    return task === sent.task ? questionResult(sent, text) : this.#present(call, { ...sent, task })
  }
}

/** Starts a session that a person can pay on a page. Returns undefined for agents without one. */
async function sessionFor(
  { calls }: Exchange,
  agent: string | undefined,
  purpose: PaymentPurpose,
): Promise<PaymentSession | undefined> {
  if (agent === undefined) return undefined
  return calls.startPaymentSession(agent, purpose).catch(() => undefined)
}

/** The tools that are only at the gateway's address. */
const forAllAgents = new Set<GatewayTool>(['find_agent', 'ask_best_agent'])

function unknownTool(name: string): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `Unknown tool: ${name.slice(0, 128)}. It does not exist or is no longer available to you; request tools/list for the current tools.`,
  )
}
