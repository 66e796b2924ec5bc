import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Reply } from '@parley/client/internal/transport'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { a2aOrder } from './a2a-load.ts'
import { pick } from './plan.ts'
import { type ClientRun, untilDone } from './retry.ts'

/** An acknowledged task, with the client's expectations. */
export interface Acknowledged {
  taskId: string
  /** Part of the task's text. Two tasks with the same value are duplicates. */
  text: string
  /** Whether the client registered a `long_running` webhook. */
  webhook: boolean
  paid: boolean
  /** The transaction in the receipt, if the response had one. */
  txHash: string | undefined
  /** The version of A2A in which the webhook was registered. Deliveries of 0.3 contain the whole task. */
  a2a?: '1.0' | '0.3'
}

export interface Loading extends ClientRun {
  receiverUrl: string
  stop: AbortSignal
}

const kinds = {
  plain: ['soon', 'soon', 'soon', 'slow', 'ask', 'hang', 'twice'],
  signs: ['soon', 'soon', 'soon', 'slow', 'ask', 'hang', 'twice'],
  pays: ['soon', 'soon', 'soon', 'slow', 'hang'],
  a2a: ['soon', 'soon', 'slow', 'ask', 'hang', 'twice', 'stream'],
}
const betweenMs = 50

/**
 * Sends messages one after the other. If there is no response, it repeats the message at any gateway under the same
 * Idempotency-Key.
 */
export async function load(loading: Loading): Promise<Acknowledged[]> {
  const { client, random, stop } = loading
  const acknowledged: Acknowledged[] = []
  // Sends at least one message, even on a slow machine.
  while (!stop.aborted || acknowledged.length === 0) {
    const kind = pick(kinds[client.role], random())
    const news = client.role === 'a2a' ? await a2aOrder(loading, kind) : await order(loading, kind)
    acknowledged.push(...news)
    loading.tally.acknowledged += news.length
    await wait(betweenMs * random())
  }
  return acknowledged
}

async function order(loading: Loading, kind: string): Promise<Acknowledged[]> {
  const { client, random, receiverUrl } = loading
  const key = randomUUID()
  const text = `${kind === 'twice' ? 'soon' : kind} order ${key}`
  const webhook = random() < 0.5
  const paid = client.purse !== undefined
  const metadata = { skill_id: paid ? 'paid-order' : 'order' }
  const message = {
    role: 'user',
    kind: 'message',
    messageId: randomUUID(),
    parts: [{ kind: 'text', text }],
    metadata,
  }
  const push = { long_running: true, push_notification_config: { id: randomUUID(), url: receiverUrl } }
  const params = { message, ...(webhook && { configuration: push }) }
  const headers = { 'idempotency-key': key }
  client.purse?.forget()
  const send = (way?: Parameters<typeof untilDone>[2]) =>
    untilDone(loading, (at) => at.request('message/send', params, { headers }), way)
  const both = () =>
    client.at.map(({ named, routed }) => send(() => (loading.random() < 0.5 ? named : routed)))
  const replies = kind === 'twice' ? await Promise.all(both()) : [await send()]
  const all = replies.flatMap((reply) => acknowledgedBy(reply, { text, webhook, paid }))
  const [first] = all
  if (first !== undefined && kind === 'hang') await untilDone(loading, (at) => at.cancel(first.taskId))
  // Two messages with the same key create one task.
  return all.filter(({ taskId }, i) => all.findIndex((one) => one.taskId === taskId) === i)
}

/** Undefined for a payment without a task. */
function acknowledgedBy(
  reply: Reply | undefined,
  expected: Pick<Acknowledged, 'text' | 'webhook' | 'paid'>,
): Acknowledged[] {
  if (reply === undefined && expected.paid) return []
  if (reply === undefined) throw new Error('a first message was refused as already done')
  const task = reply.result as WireTask
  const receipt = reply.headers.get('payment-response')
  const { transaction } =
    receipt === null
      ? {}
      : (JSON.parse(Buffer.from(receipt, 'base64').toString()) as { transaction?: string })
  return [{ ...expected, taskId: task.id, txHash: transaction || undefined }]
}
