import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { isResting, type Task } from '@parley/wire/model/task'
import type { FastifyReply } from 'fastify'
import { unlessMissing } from '../calls/agent-calls.ts'
import { parseResponseId } from './ids.ts'
import type { ApiRequest } from './open-ai-routes.ts'
import { questionOf } from './question.ts'
import { earlierResponseOf, numberOf, type ResponseView, responseOf } from './response-answer.ts'
import { conversationIn, responseBody, turnOfResponse } from './response-request.ts'
import { responseEvents } from './response-stream.ts'
import type { TurnTask } from './run-turn.ts'
import { sendEvents } from './send-events.ts'
import { turnsOf } from './task-answer.ts'
import { negotiatedModel } from './turn.ts'
import { contextIn, TurnRun } from './turn-run.ts'

/** `POST /v1/responses` */
export async function createResponse(api: ApiRequest): Promise<FastifyReply> {
  const { options, reply, json } = api
  const body = parseParams(responseBody, json())
  const turn = turnOfResponse(body)
  await api.requireModel(turn.model)
  const context = conversationIn(body) ?? contextIn(api.request.headers)
  const { previous_response_id: previousId } = body
  const previous =
    typeof previousId === 'string' ? await previousTask(api, previousId, turn.model) : undefined
  const run = new TurnRun(options, api, turn, { context, previous })
  const view: ResponseView = {
    isJson: turn.isJson,
    apiUrl: options.apiUrl,
    question: (paused) => run.question(paused),
    reread: (streamed) => run.reread(streamed),
    request: {
      conversation: context,
      background: body.background === true,
      instructions: body.instructions ?? null,
      previousResponseId: previousId ?? null,
    },
  }
  if (body.background === true) return reply.send(await responseOf(await run.finish(0), view))
  if (body.stream !== true) return reply.send(await responseOf(await run.finish(), view))
  const { first, changes } = await run.start()
  return sendEvents(reply, frames(responseEvents(first, changes, view)))
}

/** `GET /v1/responses/{id}` */
export async function getResponse(api: ApiRequest, id: string): Promise<object> {
  const { turn, number } = await turnOf(api, id)
  return storedResponse(api, turn, number)
}

/** `POST /v1/responses/{id}/cancel` */
export async function cancelResponse(api: ApiRequest, id: string): Promise<object> {
  const { turn, number } = await turnOf(api, id)
  const { task, agent } = turn
  if (number < turnsOf(task)) return storedResponse(api, turn, number)
  const calls = api.options.calls.as(api.request, api.caller)
  return storedResponse(api, { task: await calls.cancelTask({ taskId: task.id, agent }), agent }, number)
}

async function storedResponse(api: ApiRequest, turn: TurnTask, number: number): Promise<object> {
  const view: ResponseView = {
    isJson: false,
    apiUrl: api.options.apiUrl,
    question: async (paused) => questionOf(paused.task),
    reread: async (same) => same,
    request: { background: true },
  }
  void api.reply.header('cache-control', 'no-store')
  const found =
    number === numberOf(turn.task)
      ? await responseOf(turn, view)
      : await earlierResponseOf(turn, number, view)
  if (found === undefined) throw responseNotFound('response_id')
  return found
}

async function turnOf(api: ApiRequest, id: string): Promise<{ turn: TurnTask; number: number }> {
  const address = parseResponseId(id)
  if (address === undefined) throw responseNotFound('response_id')
  const calls = api.options.calls.as(api.request, api.caller)
  const turn = await calls.findTask({ taskId: address.taskId }).catch(unlessMissing)
  if (turn === undefined) throw responseNotFound('response_id')
  return { turn, number: address.turn }
}

/** Returns the task that a response continues. The agent must be the same, because a task belongs to one agent. */
async function previousTask(api: ApiRequest, id: string, model: string): Promise<Task> {
  const address = parseResponseId(id)
  const calls = api.options.calls.as(api.request, api.caller)
  const agent = model === negotiatedModel ? undefined : model
  const task = address && (await calls.getTask({ taskId: address.taskId, agent }).catch(unlessMissing))
  if (task === undefined) throw responseNotFound('previous_response_id')
  if (isResting(task.status.state)) return task
  throw new ParleyError('Conflict', {
    message: 'The previous response is still in progress. Wait until it is complete, or cancel it.',
    data: { reason: 'response_in_progress', param: 'previous_response_id', taskId: task.id },
  })
}

const responseNotFound = (param: string) =>
  new ParleyError('NotFound', {
    message: 'No response with this id exists at this agent. It may belong to another key.',
    data: {
      reason: param === 'previous_response_id' ? 'previous_response_not_found' : 'response_not_found',
      param,
    },
  })

async function* frames(events: AsyncIterable<{ type: string }>): AsyncGenerator<string> {
  for await (const event of events) yield `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
