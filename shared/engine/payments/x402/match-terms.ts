import type { PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'
import { PaymentRefused } from './payment-refused.ts'
import type { PresentedPayment } from './presented-payment.ts'

type PresentedTransfer = Extract<PresentedPayment, { kind: 'transfer' }>

/** A block may take as long; as the official packages have it. */
const leftAtLeastSeconds = 6n
/** Until a transfer can no longer be made, a settlement that nobody answered for stays unknown. */
const validAtMostSeconds = 24n * 60n * 60n

/**
 * Which of the ways to pay the transfer is for. With `requireTimely` everything is told that can be told without asking
 * anybody.
 * @throws PaymentRefused
 */
export function matchTerms(presented: PresentedTransfer, asked: readonly PaymentTerms[]): PaymentTerms {
  const { network, accepted, transfer } = presented
  const there = asked.filter((one) => one.network === network)
  if (there.length === 0) throw new PaymentRefused('invalid_network')
  const terms =
    accepted === undefined ? termsOfVersion1(there, transfer) : there.find((one) => isAccepted(one, accepted))
  if (terms === undefined) throw new PaymentRefused('invalid_payment_requirements')
  const { to, value } = transfer.authorization
  if (!isSame(to, terms.payTo)) throw new PaymentRefused('invalid_exact_evm_recipient_mismatch')
  if (BigInt(value) !== BigInt(terms.atomic))
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_value_mismatch')
  return terms
}

/** @throws PaymentRefused for a transfer that cannot be made yet, or not for long enough, or for too long */
export function requireTimely({ authorization }: SignedTransfer, nowMs = Date.now()): void {
  const { validAfter, validBefore } = authorization
  const now = BigInt(Math.floor(nowMs / 1000))
  if (BigInt(validAfter) > now)
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_valid_after')
  const until = BigInt(validBefore)
  if (until < now + leftAtLeastSeconds || until > now + validAtMostSeconds)
    throw new PaymentRefused('invalid_exact_evm_payload_authorization_valid_before')
}

/** One authorization of one payer for one token: what a chain takes once. */
export function nonceKeyOf(terms: PaymentTerms, { authorization }: SignedTransfer): string {
  return [terms.network, terms.asset, authorization.from, authorization.nonce].join(' ').toLowerCase()
}

function isAccepted(terms: PaymentTerms, accepted: NonNullable<PresentedTransfer['accepted']>): boolean {
  return (
    isSame(accepted.asset, terms.asset) &&
    isSame(accepted.payTo, terms.payTo) &&
    BigInt(accepted.amount) === BigInt(terms.atomic)
  )
}

/** Version 1 does not say the asset: the signature will. Where several fit, the amount tells. */
function termsOfVersion1(
  there: readonly PaymentTerms[],
  { authorization }: SignedTransfer,
): PaymentTerms | undefined {
  return there.find(({ atomic }) => BigInt(atomic) === BigInt(authorization.value)) ?? there[0]
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
