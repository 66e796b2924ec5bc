import { parseParams } from '@parley/wire/codecs/parley/params'
import type { FastifyReply } from 'fastify'
import { type ChatView, chatCompletion } from './chat-answer.ts'
import { type ChatBody, chatBody, turnOfChat } from './chat-request.ts'
import { chatEvents } from './chat-stream.ts'
import type { ApiRequest } from './open-ai-routes.ts'
import { sendEvents } from './send-events.ts'
import { TurnRun } from './turn-run.ts'

/** `POST /v1/chat/completions` */
export async function completeChat(api: ApiRequest): Promise<FastifyReply> {
  const { options, reply, json } = api
  const body = parseParams(chatBody, json())
  const turn = turnOfChat(body)
  await api.requireModel(turn.model)
  const run = new TurnRun(options, api, turn)
  const view: ChatView = {
    isJson: turn.isJson,
    apiUrl: options.apiUrl,
    question: (paused) => run.question(paused),
    reread: (streamed) => run.reread(streamed),
    created: Math.floor(Date.now() / 1000),
  }
  if (body.stream !== true) return reply.send(await chatCompletion(await run.finish(), view))
  const { first, changes } = await run.start()
  return sendEvents(reply, frames(chatEvents(first, changes, { view, includeUsage: includesUsage(body) })))
}

const includesUsage = ({ stream_options: options }: ChatBody) => options?.include_usage === true

async function* frames(events: AsyncIterable<object | string>): AsyncGenerator<string> {
  for await (const event of events)
    yield `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`
}
