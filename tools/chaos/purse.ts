import { type PaymentRequirements, payingFetch } from '@parley/client/internal/paying-fetch'
import type { ClientOptions } from '@parley/client/internal/transport'
import { addressOf, newWalletKey, type SignedPayment, signPayment } from '@parley/engine/payments/x402/wallet'
import type { Clock } from './clients.ts'

/** Signs one payment per purchase and sends it again whenever the message is repeated. */
export class Purse {
  readonly address: string
  readonly fetch: NonNullable<ClientOptions['fetch']>
  readonly #key: `0x${string}`
  readonly #clock: Clock
  #payment: SignedPayment | undefined
  /** The signing account. */
  signedWrongBy = 0

  private constructor(key: `0x${string}`, address: string, clock: Clock) {
    this.#key = key
    this.#clock = clock
    this.address = address
    this.fetch = payingFetch((requirement) => this.#pay(requirement))
  }

  static async make(clock: Clock): Promise<Purse> {
    const key = await newWalletKey()
    return new Purse(key, await addressOf(key), clock)
  }

  /** Forgets the payment, because the next message is another purchase or needs another payment. */
  forget(): void {
    this.#payment = undefined
  }

  async #pay({ accepts: [requirement] }: PaymentRequirements): Promise<SignedPayment | undefined> {
    if (this.#payment !== undefined || requirement === undefined) return this.#payment
    this.signedWrongBy = this.#clock.wrongBy
    // The official client signs with this machine's clock. A clock that is behind makes the payment expire
    // earlier.
    const maxTimeoutSeconds = requirement.maxTimeoutSeconds + Math.min(this.signedWrongBy, 0)
    const signed = await signPayment(this.#key, {
      requirements: { ...requirement, scheme: 'exact', maxTimeoutSeconds },
    })
    this.#payment = { ...signed, accepted: { ...requirement, scheme: 'exact' } }
    return this.#payment
  }
}
