import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { AgentClient, RpcError } from '@parley/client/internal/client'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { pick } from '../chaos/plan.ts'
import { A2aCaller, type A2aReply, a2aBindings } from '../testing/a2a-caller.ts'
import type { FailoverCluster, Packer } from './cluster.ts'

/** An acknowledged message. */
export interface Acknowledged {
  messageId: string
  taskId: string
  /** Value of the header X-Agent. */
  agent: string
  /** Value of the header X-Negotiation-Id; absent for a repeated message. */
  negotiationId: string | undefined
  /** Time of the first attempt, in milliseconds since 1970. */
  sentAt: number
  /** Whether only one agent could process the message. */
  isForOne: boolean
}

/** The outcomes of all messages. */
export interface Ledger {
  sent: number
  acknowledged: Acknowledged[]
  /** Ids of refused messages, by the reason for the refusal. */
  refused: Map<string, string[]>
  /** Number of messages for which the gateway did not know the outcome. */
  unknown: number
  /** Ids of messages with an outcome that remained unknown after many repetitions. */
  unsettled: string[]
  /** Number of other responses, by text. */
  unclear: Map<string, number>
}

/** The task of a message, in any dialect. */
interface Answer {
  taskId: string
  headers: Headers
}

const answerOf = ({ task, headers }: A2aReply): Answer => ({ taskId: task.id, headers })

/** Longer than the gateway's retries. */
const requestTimeoutMs = 60_000
const inFlightMax = 1000
const text = 'pack the order, label the parcel and ship it'
/** One message in this many requires a particular agent. */
const oneInForOne = 8
const repeatPauseMs = 500
const repeatsMax = 60

/** Sends messages to `POST /` of the gateway, each in its own context, and records the responses. */
export class Load {
  readonly ledger: Ledger = {
    sent: 0,
    acknowledged: [],
    refused: new Map(),
    unknown: 0,
    unsettled: [],
    unclear: new Map(),
  }
  readonly #client: AgentClient
  readonly #a2a: readonly A2aCaller[]
  readonly #agents: readonly Packer[]
  readonly #random: () => number
  readonly #under = new Set<Promise<void>>()

  constructor({ url, agents, token }: FailoverCluster, random: () => number) {
    this.#client = new AgentClient({ url, token, requestTimeoutMs })
    const timeoutMs = requestTimeoutMs
    this.#a2a = a2aBindings.map((binding) => new A2aCaller({ binding, url, token, timeoutMs }))
    this.#agents = agents
    this.#random = random
  }

  /** Sends messages at this rate, independently of responses, until `stop` is aborted. */
  async run(perSecond: number, stop: AbortSignal): Promise<void> {
    const begun = performance.now()
    for (let number = 0; !stop.aborted; number += 1) {
      const early = begun + (number * 1000) / perSecond - performance.now()
      if (early > 0) await wait(early)
      if (this.#under.size >= inFlightMax) throw new Error(`${inFlightMax} messages wait for their responses`)
      const agent = this.#agents[Math.floor(number / oneInForOne) % this.#agents.length]
      this.send(number % oneInForOne === 0 ? agent : undefined)
    }
  }

  /** Sends one message. With `only`, no other agent can process it. */
  send(only?: Packer): void {
    const sent = this.#send(only).finally(() => this.#under.delete(sent))
    this.#under.add(sent)
  }

  /** Resolves when every message has a response. */
  async answered(): Promise<void> {
    while (this.#under.size > 0) await Promise.all(this.#under)
  }

  async #send(only: Packer | undefined): Promise<void> {
    const [messageId, sentAt, isForOne] = [randomUUID(), Date.now(), only !== undefined]
    const [hasContext, hasKey, hasA2a] = [0, 0, 0].map(() => this.#random() < 0.5)
    const context = hasContext === true ? { contextId: randomUUID() } : {}
    // Half of the messages that any agent can process are sent by A2A and wait for their tasks.
    const a2a = hasA2a === true && !isForOne ? pick(this.#a2a, this.#random()) : undefined
    this.ledger.sent += 1
    const ask = (key: string | undefined): Promise<Answer> =>
      a2a === undefined
        ? this.#ask({ messageId, ...context }, only, key)
        : a2a.send({ text, messageId, ...context, ...(key !== undefined && { key }) }).then(answerOf)
    try {
      this.#acknowledged(await ask(hasKey === true ? randomUUID() : undefined), {
        messageId,
        sentAt,
        isForOne,
      })
    } catch (error) {
      const key = keyOfUnknown(error)
      if (key === undefined) return this.#refused(error, messageId)
      this.ledger.unknown += 1
      const reply = await repeated(() => ask(key))
      if (reply === undefined) this.ledger.unsettled.push(messageId)
      else this.#acknowledged(reply, { messageId, sentAt, isForOne })
    }
  }

  async #ask(
    ids: { messageId: string; contextId?: string },
    only: Packer | undefined,
    key: string | undefined,
  ): Promise<Answer> {
    const message = { role: 'user', kind: 'message', parts: [{ kind: 'text', text }], ...ids }
    const negotiation = { required_tools: [only?.tool] }
    const params = { message, ...(only !== undefined && { configuration: { negotiation } }) }
    const headers = key === undefined ? {} : { headers: { 'idempotency-key': key } }
    const reply = await this.#client.request('message/send', params, headers)
    return { taskId: (reply.result as WireTask).id, headers: reply.headers }
  }

  #acknowledged(
    { taskId, headers }: Answer,
    of: Pick<Acknowledged, 'messageId' | 'sentAt' | 'isForOne'>,
  ): void {
    const agent = headers.get('x-agent') ?? ''
    const negotiationId = headers.get('x-negotiation-id') ?? undefined
    this.ledger.acknowledged.push({ ...of, taskId, agent, negotiationId })
  }

  #refused(error: unknown, messageId: string): void {
    const { refused, unclear } = this.ledger
    const why = clearRefusal(error)
    if (why !== undefined) refused.set(why, [...(refused.get(why) ?? []), messageId])
    else unclear.set(String(error), (unclear.get(String(error)) ?? 0) + 1)
  }
}

/** Repeats the message, with the key from the error, until its outcome is known. */
async function repeated(ask: () => Promise<Answer>): Promise<Answer | undefined> {
  for (let count = 0; count < repeatsMax; count += 1) {
    await wait(repeatPauseMs)
    const reply = await ask().catch(() => undefined)
    if (reply !== undefined) return reply
  }
  return undefined
}

function keyOfUnknown(error: unknown): string | undefined {
  if (!(error instanceof RpcError) || error.data['reason'] !== 'outcome_unknown') return undefined
  return error.headers.get('idempotency-key') ?? undefined
}

/** Reasons that say that no candidate accepts work or that the gateway currently cannot check tokens. */
const takesNone: readonly unknown[] = ['agent_down', 'oauth']

/** The reason in an error that says that no agent has the message. */
function clearRefusal(error: unknown): string | undefined {
  if (!(error instanceof RpcError)) return undefined
  const { code, status, headers, data } = error
  const reason = String(data['reason'])
  if (code === -32042 && status === 503 && headers.has('retry-after') && takesNone.includes(reason))
    return reason
  return code === -32004 && reason === 'no_agent' ? reason : undefined
}
