import { type PaymentAsked, payingFetch } from '@parley/client/internal/paying-fetch'
import type { ClientOptions } from '@parley/client/internal/transport'
import { addressOf, newWalletKey, type SignedPayment, signPayment } from '@parley/engine/payments/x402/wallet'
import type { Clock } from './clients.ts'

/** Signs one payment for what is bought, and shows it again as often as the message is repeated. */
export class Purse {
  readonly address: string
  readonly fetch: NonNullable<ClientOptions['fetch']>
  readonly #key: `0x${string}`
  readonly #clock: Clock
  #payment: SignedPayment | undefined
  /** What the payment was signed by. */
  signedWrongBy = 0

  private constructor(key: `0x${string}`, address: string, clock: Clock) {
    this.#key = key
    this.#clock = clock
    this.address = address
    this.fetch = payingFetch((asked) => this.#pay(asked))
  }

  static async make(clock: Clock): Promise<Purse> {
    const key = await newWalletKey()
    return new Purse(key, await addressOf(key), clock)
  }

  /** What comes next is another purchase, or is to be paid by another payment. */
  forget(): void {
    this.#payment = undefined
  }

  async #pay({ accepts: [asked] }: PaymentAsked): Promise<SignedPayment | undefined> {
    if (this.#payment !== undefined || asked === undefined) return this.#payment
    this.signedWrongBy = this.#clock.wrongBy
    // The official client signs by the clock of this machine: one that is behind lets a payment end so much earlier.
    const maxTimeoutSeconds = asked.maxTimeoutSeconds + Math.min(this.signedWrongBy, 0)
    const signed = await signPayment(this.#key, {
      requirements: { ...asked, scheme: 'exact', maxTimeoutSeconds },
    })
    this.#payment = { ...signed, accepted: { ...asked, scheme: 'exact' } }
    return this.#payment
  }
}
