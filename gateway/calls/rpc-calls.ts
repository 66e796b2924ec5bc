import { randomUUID } from 'node:crypto'
import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import { InvalidAgentAnswer } from '@parley/relay/client/agent-errors'
import { sseFrames } from '@parley/relay/client/sse-frames'
import type { ClientParams, Codec, ReadFrame } from '@parley/wire/codecs/codec'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { joined } from '../routing/forwarding/exchange.ts'
import type { InnerResponse, RequestSender } from './inner-requests.ts'

/** The only dialect of inner calls: every agent has it, and the relay translates it for foreign agents. */
const dialect: Codec = defaultDialect

/** Limit for an answer that is no stream. The gateway limits the answer to a forwarded message likewise. */
const answerMaxMiB = 64
const streamLimits = { frameMaxChars: 64 * 1024 * 1024, framesMax: 1_000_000, streamMaxBytes: 1024 ** 3 }

export interface RpcOptions {
  /** The slug of the agent. If undefined, the gateway routes the call. */
  agent: string | undefined
  signal?: AbortSignal | undefined
  idempotencyKey?: string | undefined
  /** The longest time until the end of the answer. */
  maxMs?: number | undefined
}

/** The facts about a call that the headers of its answer state. */
export interface Routed {
  agent: string | undefined
  decisionId: string | undefined
  /** The settlement of the payment of a message (x402, version 2). */
  receipt: JsonObject | undefined
}

/** @returns the result of a call, and its route. @throws ParleyError */
export async function callAgent<O extends keyof ClientParams>(
  sender: RequestSender,
  operation: O,
  params: ClientParams[O],
  options: RpcOptions,
): Promise<{ result: unknown; routed: Routed; dialect: Codec }> {
  using response = await open(sender, operation, params, options)
  const answer = await jsonOf(response, sender)
  refuseError(response, answer)
  if (!isObject(answer) || !('result' in answer)) throw unreadable()
  return { result: answer['result'], routed: routedBy(response, options), dialect }
}

/** Yields the frames of a stream after its route. @throws ParleyError */
export async function* streamFromAgent(
  sender: RequestSender,
  operation: 'streamMessage' | 'resubscribe',
  params: ClientParams[typeof operation],
  options: RpcOptions,
): AsyncGenerator<{ frame: Exclude<ReadFrame, { kind: 'error' }>; routed: Routed }> {
  using response = await open(sender, operation, params, options)
  const routed = routedBy(response, options)
  const type = response.headers['content-type']
  if (response.status !== 200 || typeof type !== 'string' || !type.startsWith('text/event-stream')) {
    const answer = await jsonOf(response, sender)
    refuseError(response, answer)
    const sent = dialect.readSendResult(isObject(answer) ? answer['result'] : undefined)
    if (sent === undefined) throw unreadable()
    yield { frame: sent, routed }
    return
  }
  for await (const data of framesOf(response)) {
    const frame = data === '' ? undefined : dialect.readFrame(parseJson(Buffer.from(data)))
    if (frame === undefined) throw unreadable()
    if (frame.kind === 'error') throw frame.error
    yield { frame, routed }
  }
}

async function open<O extends keyof ClientParams>(
  sender: RequestSender,
  operation: O,
  params: ClientParams[O],
  { agent, signal, maxMs, idempotencyKey }: RpcOptions,
): Promise<InnerResponse> {
  const isStream = operation === 'streamMessage' || operation === 'resubscribe'
  const method = dialect.methodOf(operation)
  return sender.send({
    path: pathOf(agent),
    headers: {
      accept: isStream ? 'text/event-stream, application/json' : 'application/json',
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: randomUUID(),
      method,
      params: dialect.writeParams(operation, params),
    }),
    signal,
    maxMs,
  })
}

/** @throws ParleyError NotFound for a name that no agent can have, such as `..`, which would change the path */
function pathOf(slug: string | undefined): string {
  if (slug === undefined) return '/'
  if (!/^[\w-]+$/.test(slug)) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
  return `/agents/${slug}/`
}

async function* framesOf({ body, failureOf }: InnerResponse): AsyncGenerator<string> {
  try {
    yield* sseFrames(body, streamLimits)
  } catch (error) {
    throw error instanceof InvalidAgentAnswer ? unreadable(error) : failureOf(error)
  }
}

/** Returns the whole body as JSON. @throws ParleyError */
export async function jsonOf(response: InnerResponse, sender: RequestSender): Promise<unknown> {
  using claim = sender.openClaim()
  const bytes = await bytesOf(response, claim)
  try {
    return parseJson(bytes)
  } catch (error) {
    throw unreadable(error)
  }
}

function bytesOf({ body, failureOf }: InnerResponse, claim: Pick<AnswerClaim, 'reserve'>): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let bytes = 0
  body.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength
    try {
      if (bytes > answerMaxMiB * 1024 * 1024) throw tooLarge()
      claim.reserve(bytes)
      chunks.push(chunk)
    } catch (error) {
      chunks.length = 0
      reject(error)
      body.destroy()
    }
  })
  body.once('end', () => resolve(joined(chunks)))
  body.once('error', (error) => reject(failureOf(error)))
  body.once('close', () => {
    if (!body.readableEnded) reject(failureOf())
  })
  return promise
}

/** Headers of an error that concern the client of any interface. */
const errorHeaders = ['retry-after', 'www-authenticate', 'x-agent', 'x-negotiation-id', 'payment-required']

/** @throws ParleyError if the answer is an error */
export function refuseError({ status, headers }: InnerResponse, answer: unknown): void {
  const kept = errorHeaders.flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  const error = dialect.readError(answer)
  if (error === undefined && status < 400) return
  const { message, data = {} } = error ?? {}
  throw new ParleyError(nameOf(status, error), {
    ...(message !== undefined && { message }),
    data: status === 402 && isObject(answer) ? answer : data,
    ...(status >= 400 && { status }),
    headers: Object.fromEntries(kept),
  })
}

function nameOf(status: number, error: ParleyError | undefined): ParleyError['error'] {
  if (status === 402) return 'PaymentRequired'
  return error?.error ?? 'InvalidAgentResponse'
}

function routedBy({ headers }: InnerResponse, { agent }: RpcOptions): Routed {
  const receipt = textOf(headers['payment-response'])
  return {
    agent: textOf(headers['x-agent']) ?? agent,
    decisionId: textOf(headers['x-negotiation-id']),
    receipt:
      receipt === undefined ? undefined : jsonObjectOf(Buffer.from(receipt, 'base64').toString('utf8')),
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

const tooLarge = () =>
  new ParleyError('InvalidAgentResponse', {
    message: `The answer of the agent is larger than ${answerMaxMiB} MiB: read the task with tasks/get at the agent`,
    data: { reason: 'answer_too_large' },
  })

const unreadable = (cause?: unknown) =>
  new ParleyError('InvalidAgentResponse', {
    message: 'The agent answered with something that the gateway cannot read',
    cause,
  })
