import { setTimeout as pause } from 'node:timers/promises'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AddInterface } from '../add-routes.ts'
import { mcpRecipient } from '../http/protected-resource-routes.ts'
import { bearer, gateway } from '../testing.ts'
import type { AgentMessage, CallerCalls, TaskAddress, TaskChange } from './agent-calls.ts'

export interface TestCall {
  send?: AgentMessage
  waitMs?: number
  /** Repeats `send`, one at a time, with these texts. */
  texts?: string[]
  stream?: AgentMessage
  get?: TaskAddress
  /** Reads these tasks at the same time. */
  getAll?: TaskAddress[]
  cancel?: TaskAddress
  follow?: TaskAddress
}

/** Adds `POST /test-calls` and `POST /agents/{slug}/test-calls`, which accept the same tokens as the MCP endpoints. */
export const testInterface: AddInterface = (app, { calls, authenticator, gatewayUrl }) => {
  const handle = async (request: FastifyRequest<{ Params: { slug?: string } }>, reply: FastifyReply) => {
    const recipient = mcpRecipient({ gatewayUrl, requiresAudience: false }, request.params.slug)
    const caller = await authenticator.authenticateAt(recipient, request)
    const own = calls.as(request as FastifyRequest, caller)
    const call = JSON.parse(String(request.body)) as TestCall
    const changes = call.stream ? own.stream(call.stream) : call.follow && own.follow(call.follow)
    if (changes === undefined) return reply.send(await answerOf(own, call))
    await writeLines(reply, changes)
    return reply
  }
  app.post('/test-calls', handle)
  app.post('/agents/:slug/test-calls', handle)
}

async function answerOf(
  own: CallerCalls,
  { send, waitMs = 0, texts, get, getAll, cancel }: TestCall,
): Promise<unknown> {
  if (get !== undefined) return own.getTask(get)
  if (getAll !== undefined) return Promise.all(getAll.map((one) => own.getTask(one)))
  if (cancel !== undefined) return own.cancelTask(cancel)
  if (send === undefined) throw new ParleyError('InvalidParams')
  if (texts === undefined) return own.send(send, { waitMs })
  const sent = []
  for (const text of texts)
    sent.push(await own.send({ ...send, message: { parts: [{ kind: 'text', text }] } }, { waitMs }))
  return sent
}

/** Writes each change as a line of JSON. An error is the last line. */
async function writeLines(reply: FastifyReply, changes: AsyncIterable<TaskChange>): Promise<void> {
  reply.hijack()
  try {
    for await (const change of changes) reply.raw.write(`${JSON.stringify(change)}\n`)
  } catch (error) {
    reply.raw.write(`${JSON.stringify({ error: ParleyError.from(error).error })}\n`)
  }
  reply.raw.end()
}

interface Sender {
  /** Default: the gateway of `gatewayForEachTest`. */
  gateway?: string
  authorization?: string
  path?: string
  headers?: Record<string, string>
  signal?: AbortSignal
}

export function request(
  call: TestCall,
  { gateway: url = gateway().addresses.public, authorization, path = '', headers, signal }: Sender = {},
) {
  return fetch(`${url}${path}/test-calls`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: authorization ?? bearer('alice'),
      ...headers,
    },
    body: JSON.stringify(call),
    ...(signal && { signal }),
  })
}

export async function answered(call: TestCall, sender?: Sender) {
  const response = await request(call, sender)
  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  return { status: response.status, headers: response.headers, json: (await response.json()) as any }
}

/** Returns the changes of a stream until it ends. */
export async function changes(call: TestCall, sender?: Sender) {
  const lines = (await (await request(call, sender)).text()).trimEnd().split('\n')
  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  return lines.map((line) => JSON.parse(line) as any)
}

export const saying = (text: string, more: Partial<AgentMessage> = {}): AgentMessage => ({
  message: { parts: [{ kind: 'text', text }] },
  ...more,
})

export async function until(isMet: () => boolean): Promise<void> {
  while (!isMet()) await pause(5)
}
