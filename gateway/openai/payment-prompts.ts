import { withPaymentSession } from '@parley/wire/codecs/parley/metadata'
import { sessionOut } from '@parley/wire/codecs/parley/payments'
import { ParleyError } from '@parley/wire/errors'
import { cleanText } from '@parley/wire/model/clean-text'
import type { PaymentSession } from '@parley/wire/model/payment'
import type { JsonObject, Task } from '@parley/wire/model/task'
import { z } from 'zod'
import type { CallerCalls } from '../calls/agent-calls.ts'
import type { OAuthStore } from '../oauth/oauth-store.ts'
import { idOfValues } from './ids.ts'
import type { PaymentPage } from './question.ts'

const model = 'PaymentPrompt'
const stored = z.object({ agent: z.string(), sessionId: z.string() })
/** A completed session can be used for 7 days (spec/payments.md#refunds). */
const keptSeconds = 7 * 24 * 3600

export interface Payer {
  calls: CallerCalls
  owner: string
}

/**
 * Payment sessions for people who use a chat client. A request that must be paid is answered with the address of a payment page.
 * After the payment, the next such request of the same caller uses it. The sessions are stored, because the caller may be back
 * after a restart, or at another gateway.
 */
export class PaymentPrompts {
  readonly #store: Pick<OAuthStore, 'upsert' | 'find'>

  constructor(store: Pick<OAuthStore, 'upsert' | 'find'>) {
    this.#store = store
  }

  /**
   * Returns the metadata that pays for the message.
   * @throws ParleyError with status 402, the terms and the payment page if its caller has not paid yet
   */
  async required(
    payer: Payer,
    error: ParleyError,
    { agent, skillId, isRefusal }: { agent: string | undefined; skillId: unknown; isRefusal: boolean },
  ): Promise<JsonObject> {
    if (agent === undefined) throw paymentRequired(error, agent, undefined)
    const skill = typeof skillId === 'string' ? { skillId } : {}
    const session = await this.#session(payer, agent, skill)
    if (session !== undefined && isPaid(session) && !isRefusal) return withPaymentSession(session.id)
    throw paymentRequired(error, agent, session)
  }

  /** Returns the metadata that pays for a paused task, or undefined if its caller has not paid yet. */
  async paidFor(payer: Payer, { id: taskId }: Task): Promise<JsonObject | undefined> {
    const session = await this.#known(payer, { taskId })
    return session !== undefined && isPaid(session) ? withPaymentSession(session.id) : undefined
  }

  /** Returns the payment page of a paused task. */
  async pageOf(
    payer: Payer,
    { id: taskId }: Task,
    agent: string | undefined,
  ): Promise<PaymentPage | undefined> {
    const session =
      agent === undefined
        ? await this.#known(payer, { taskId })
        : await this.#session(payer, agent, { taskId })
    return session && { url: session.captureUrl }
  }

  /** Returns the session that can still be paid or used, or a new one; undefined if the agent has no payment page. */
  async #session(
    payer: Payer,
    agent: string,
    purpose: { taskId?: string; skillId?: string },
  ): Promise<PaymentSession | undefined> {
    const known = await this.#known(payer, purpose.taskId === undefined ? { agent, ...purpose } : purpose)
    if (known !== undefined && (known.status === 'pending' || isPaid(known))) return known
    const session = await payer.calls.startPaymentSession(agent, purpose).catch(unlessRefused)
    if (session === undefined) return undefined
    const id = recordId(payer, purpose.taskId === undefined ? { agent, ...purpose } : purpose)
    const expiresAt = Math.floor(Date.now() / 1000) + keptSeconds
    await this.#store.upsert({ model, id, payload: { agent, sessionId: session.id }, expiresAt })
    return session
  }

  async #known(payer: Payer, purpose: object): Promise<PaymentSession | undefined> {
    const { data } = stored.safeParse(await this.#store.find(model, recordId(payer, purpose)))
    return data && payer.calls.findPaymentSession(data.agent, data.sessionId).catch(unlessRefused)
  }
}

/** An agent of another vendor may have no payment sessions, and ended sessions are removed. */
function unlessRefused(error: unknown): undefined {
  if (error instanceof ParleyError && error.status < 500) return undefined
  throw error
}

const recordId = ({ owner }: Payer, purpose: object) => idOfValues(owner, purpose)

const isPaid = ({ status, spent }: PaymentSession) => status === 'completed' && !spent

const required = z.object({
  accepts: z.tuple([z.object({ extra: z.object({ name: z.string().max(50) }) })]).rest(z.unknown()),
})

/** Returns the name of the asset in the terms, followed by a space; empty if they state none. */
function assetName(terms: unknown): string {
  const { data } = required.safeParse(terms)
  return data === undefined ? '' : `${data.accepts[0].extra.name} `
}

/** Returns the error with everything that a person or a program needs to pay. */
function paymentRequired(
  error: ParleyError,
  agent: string | undefined,
  session: PaymentSession | undefined,
): ParleyError {
  const { data, headers, cause } = error
  const name = agent ?? 'The agent'
  const { terms, captureUrl = '', sandbox = false } = session ?? {}
  const price =
    terms === undefined
      ? `${name} must be paid before it answers`
      : `${name} charges ${terms.amount} ${assetName(data)}(${terms.asset}) on ${terms.network}${sandbox ? ', in test money,' : ''} for this message`
  const how =
    session === undefined
      ? 'Pay with the header PAYMENT-SIGNATURE (x402).'
      : `Pay at ${captureUrl} and send the message again. Programs pay with the header PAYMENT-SIGNATURE (x402).`
  return new ParleyError(error.error, {
    status: 402,
    message: cleanText(`${price}. ${how}`),
    data: {
      reason: 'payment_required',
      ...(agent !== undefined && { agent }),
      terms: data,
      ...(session !== undefined && { payment: sessionOut(session) }),
    },
    headers,
    cause,
  })
}
