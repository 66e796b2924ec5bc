import type { PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'
import { PaymentRefused } from './payment-refused.ts'
import type { PresentedPayment } from './presented-payment.ts'

type PresentedTransfer = Extract<PresentedPayment, { kind: 'transfer' }>

/** Time allowed for including the transfer in a block. The official packages use the same value. */
const remainingMinSeconds = 6n
/** Limits how long a settlement can remain unknown, because it ends when its transfer expires. */
const validityMaxSeconds = 24n * 60n * 60n

/**
 * Returns the terms that the transfer pays. Together with `requireTimely`, this performs all checks that need
 * neither the ledger nor the facilitator.
 * @throws PaymentRefused
 */
export function matchTerms(presented: PresentedTransfer, accepts: readonly PaymentTerms[]): PaymentTerms {
  const { network, accepted, transfer } = presented
  const onNetwork = accepts.filter((one) => one.network === network)
  if (onNetwork.length === 0) throw new PaymentRefused('invalid_network')
  const terms =
    accepted === undefined
      ? termsOfVersion1(onNetwork, transfer)
      : onNetwork.find((one) => isAccepted(one, accepted))
  if (terms === undefined) throw new PaymentRefused('invalid_payment_requirements')
  const { to, value } = transfer.authorization
  if (!isSame(to, terms.payTo)) throw new PaymentRefused('invalid_exact_evm_recipient_mismatch')
  if (BigInt(value) !== BigInt(terms.atomic))
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_value_mismatch')
  return terms
}

/**
 * Checks the validity period of the transfer.
 * @throws PaymentRefused when the transfer is not valid yet, about to expire, or valid for more than a day
 */
export function requireTimely({ authorization }: SignedTransfer, nowMs = Date.now()): void {
  const { validAfter, validBefore } = authorization
  const now = BigInt(Math.floor(nowMs / 1000))
  if (BigInt(validAfter) > now)
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_valid_after')
  const until = BigInt(validBefore)
  if (until < now + remainingMinSeconds || until > now + validityMaxSeconds)
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_valid_before')
}

/** Returns the key of an authorization. A token contract accepts each of a payer's nonces once. */
export function nonceKeyOf(
  { network, asset }: Pick<PaymentTerms, 'network' | 'asset'>,
  { from, nonce }: Pick<SignedTransfer['authorization'], 'from' | 'nonce'>,
): string {
  return [network, asset, from, nonce].join(' ').toLowerCase()
}

function isAccepted(terms: PaymentTerms, accepted: NonNullable<PresentedTransfer['accepted']>): boolean {
  return (
    isSame(accepted.asset, terms.asset) &&
    isSame(accepted.payTo, terms.payTo) &&
    BigInt(accepted.amount) === BigInt(terms.atomic)
  )
}

/**
 * Version 1 does not name the asset. If there are several terms, the amount selects one of them, and the
 * signature check confirms the choice.
 */
function termsOfVersion1(
  onNetwork: readonly PaymentTerms[],
  { authorization }: SignedTransfer,
): PaymentTerms | undefined {
  return onNetwork.find(({ atomic }) => BigInt(atomic) === BigInt(authorization.value)) ?? onNetwork[0]
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
