import type { Slot } from '@parley/engine/queue/scheduler'
import type { TaskRecord } from '@parley/engine/store/store'
import type { AcceptedPayment } from '@parley/engine/tasks/transitions'
import { ParleyError } from '@parley/wire/errors'
import { claimIdempotencyKey, type IdempotencyKey } from './idempotency.ts'
import type { InlineWebhook } from './inline-webhook.ts'
import type { Call, Services } from './method.ts'
import { claimQueuePlace } from './queue-place.ts'

/** A payment that was accepted for a message before the message became work. */
export interface MessagePayment extends AcceptedPayment {
  /** The receipt, as response headers. */
  headers: Record<string, string>
  /** Makes the payment available for another message, unless a concurrent attempt has taken it over. */
  giveBack(): Promise<void>
  /** Called once the task is stored: applies a settlement that became known in the meantime. */
  bound(): Promise<void>
}

type Releasable = 'payment' | 'queue place' | 'webhook'

/**
 * A stack of the claims that one message holds before it becomes work. `commit` decides which of them the task keeps;
 * `release` and disposal release all others, latest first.
 *
 * Idempotency keys and signatures are never released: a repeated request must find the same task ID, and each
 * signature is accepted only once.
 */
export class MessageClaims implements AsyncDisposable {
  readonly #services: Services
  readonly #call: Call
  readonly #kept = new Set<Releasable>()
  #stack = new AsyncDisposableStack()

  constructor(services: Services, call: Call) {
    this.#services = services
    this.#call = call
  }

  /** Binds the `Idempotency-Key` of the request, if it has one, to a task ID. @throws ParleyError InvalidParams */
  idempotencyKey(taskId: string | undefined): Promise<IdempotencyKey | undefined> {
    return claimIdempotencyKey(this.#services.store, this.#call, taskId)
  }

  /** @throws as `pay` */
  async payment(pay: () => Promise<MessagePayment | undefined>): Promise<MessagePayment | undefined> {
    const payment = await pay()
    if (payment !== undefined) this.#releaseLater('payment', () => payment.giveBack())
    return payment
  }

  /** @throws ParleyError Unavailable when the queue is full */
  async queuePlace(): Promise<Slot> {
    const place = await claimQueuePlace(this.#services, this.#call.caller.id)
    this.#releaseLater('queue place', async () => place.release())
    return place
  }

  /** @throws ParleyError InvalidTokenSignature when the signature was used before */
  signature(): Promise<void> {
    return this.#call.takeSignature()
  }

  /** Registers the webhook of the message before the task changes, so that it receives every event. */
  async webhook(webhook: InlineWebhook | undefined, task: TaskRecord, isNew: boolean): Promise<void> {
    const registration = await webhook?.register(task, isNew)
    if (registration !== undefined) this.#releaseLater('webhook', () => registration.undo())
  }

  /**
   * Runs the write that turns the message into work. The task keeps every claim if the write succeeds, and none if it
   * rejects or resolves with undefined. If the outcome is unknown, the task may be stored: it keeps its payment and webhook.
   */
  async commit<T extends object | undefined>(write: () => Promise<T>): Promise<T> {
    try {
      const written = await write()
      if (written !== undefined) this.#keep('payment', 'queue place', 'webhook')
      return written
    } catch (error) {
      if (isOutcomeUnknown(this.#services, error)) this.#keep('payment', 'webhook')
      throw error
    }
  }

  /** Keeps the payment, because the same request in another process has paid for the stored task with it. */
  keepPayment(): void {
    this.#keep('payment')
  }

  /** Releases the claims that were not kept. Further claims may follow. */
  async release(): Promise<void> {
    const stack = this.#stack
    this.#stack = new AsyncDisposableStack()
    await stack.disposeAsync()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  #keep(...claims: Releasable[]): void {
    for (const claim of claims) this.#kept.add(claim)
  }

  /** Logs a failed release, because the caller receives the refusal that led to it. */
  #releaseLater(claim: Releasable, release: () => Promise<void>): void {
    this.#kept.delete(claim)
    this.#stack.defer(async () => {
      if (this.#kept.has(claim)) return
      await release().catch((error: unknown) =>
        this.#call.log().error({ err: error, claim }, 'a claim of a refused message could not be released'),
      )
    })
  }
}

/** Whether a failed write may have been applied, because a shared store can lose the connection after the write. */
function isOutcomeUnknown({ store }: Services, error: unknown): boolean {
  return !store.exclusive && error instanceof ParleyError && error.error === 'Unavailable'
}
