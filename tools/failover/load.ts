import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { AgentClient, RpcError } from '@parley/client/internal/client'
import type { Reply } from '@parley/client/internal/transport'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import type { FailoverCluster, Packer } from './cluster.ts'

/** A message that was acknowledged. */
export interface Told {
  messageId: string
  taskId: string
  /** X-Agent. */
  agent: string
  /** X-Negotiation-Id; absent where the message went to where it had been sent before. */
  negotiationId: string | undefined
  /** In milliseconds since 1970, as it was sent first. */
  sentAt: number
  /** Only one agent could do it. */
  isForOne: boolean
}

/** What became of all that was sent. */
export interface Ledger {
  sent: number
  told: Told[]
  /** Ids of the messages that nobody took, by what the refusal said. */
  refused: Map<string, string[]>
  /** Messages whose outcome the gateway did not know. */
  unknown: number
  /** Of these: not known after many repetitions either. */
  unsettled: string[]
  /** Answers that are none of these, by what they said. */
  unclear: Map<string, number>
}

/** More than the gateway's own repetitions take. */
const requestTimeoutMs = 60_000
const inFlightMax = 1000
const text = 'pack the order, label the parcel and ship it'
/** One message in so many can be done by one agent alone. */
const oneInForOne = 8
const repeatPauseMs = 500
const repeatsMax = 60

/** Sends messages to `POST /` of the gateway, each of a context of its own, and keeps record of the answers. */
export class Load {
  readonly ledger: Ledger = {
    sent: 0,
    told: [],
    refused: new Map(),
    unknown: 0,
    unsettled: [],
    unclear: new Map(),
  }
  readonly #client: AgentClient
  readonly #agents: readonly Packer[]
  readonly #random: () => number
  readonly #under = new Set<Promise<void>>()

  constructor({ url, agents, token }: FailoverCluster, random: () => number) {
    this.#client = new AgentClient({ url, token, requestTimeoutMs })
    this.#agents = agents
    this.#random = random
  }

  /** So many a second, whatever becomes of them, until `stop`. */
  async run(perSecond: number, stop: AbortSignal): Promise<void> {
    const begun = performance.now()
    for (let number = 0; !stop.aborted; number += 1) {
      const early = begun + (number * 1000) / perSecond - performance.now()
      if (early > 0) await wait(early)
      if (this.#under.size >= inFlightMax) throw new Error(`${inFlightMax} messages wait for their answers`)
      const agent = this.#agents[Math.floor(number / oneInForOne) % this.#agents.length]
      this.send(number % oneInForOne === 0 ? agent : undefined)
    }
  }

  /** One message; with `only` one that no other agent can do. */
  send(only?: Packer): void {
    const sent = this.#send(only).finally(() => this.#under.delete(sent))
    this.#under.add(sent)
  }

  /** When every message that was sent has had its answer. */
  async answered(): Promise<void> {
    while (this.#under.size > 0) await Promise.all(this.#under)
  }

  async #send(only: Packer | undefined): Promise<void> {
    const [messageId, sentAt, isForOne] = [randomUUID(), Date.now(), only !== undefined]
    const [hasContext, hasKey] = [this.#random() < 0.5, this.#random() < 0.5]
    const parts = [{ kind: 'text', text }]
    const context = hasContext ? { contextId: randomUUID() } : {}
    const message = { role: 'user', kind: 'message', messageId, parts, ...context }
    const negotiation = { required_tools: [only?.tool] }
    const params = { message, ...(isForOne && { configuration: { negotiation } }) }
    this.ledger.sent += 1
    const ask = (key: string | undefined) =>
      this.#client.request(
        'message/send',
        params,
        key === undefined ? {} : { headers: { 'idempotency-key': key } },
      )
    try {
      this.#told(await ask(hasKey ? randomUUID() : undefined), { messageId, sentAt, isForOne })
    } catch (error) {
      const key = keyOfUnknown(error)
      if (key === undefined) return this.#refused(error, messageId)
      this.ledger.unknown += 1
      const reply = await repeated(() => ask(key))
      if (reply === undefined) this.ledger.unsettled.push(messageId)
      else this.#told(reply, { messageId, sentAt, isForOne })
    }
  }

  #told({ result, headers }: Reply, of: Pick<Told, 'messageId' | 'sentAt' | 'isForOne'>): void {
    const agent = headers.get('x-agent') ?? ''
    const negotiationId = headers.get('x-negotiation-id') ?? undefined
    this.ledger.told.push({ ...of, taskId: (result as WireTask).id, agent, negotiationId })
  }

  #refused(error: unknown, messageId: string): void {
    const { refused, unclear } = this.ledger
    const why = clearRefusal(error)
    if (why !== undefined) refused.set(why, [...(refused.get(why) ?? []), messageId])
    else unclear.set(String(error), (unclear.get(String(error)) ?? 0) + 1)
  }
}

/** The same message, under the key that the gateway named, until its outcome is known. */
async function repeated(ask: () => Promise<Reply>): Promise<Reply | undefined> {
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

/** None of the candidates takes work; or the gateway cannot look at tokens now. */
const takesNone: readonly unknown[] = ['agent_down', 'oauth']

/** Nobody has the message, and the answer says so. */
function clearRefusal(error: unknown): string | undefined {
  if (!(error instanceof RpcError)) return undefined
  const { code, status, headers, data } = error
  const reason = String(data['reason'])
  if (code === -32042 && status === 503 && headers.has('retry-after') && takesNone.includes(reason))
    return reason
  return code === -32004 && reason === 'no_agent' ? reason : undefined
}
