import { erc20Abi, type Log, parseEventLogs } from 'viem'
import type { PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'

type Authorization = Pick<SignedTransfer['authorization'], 'from' | 'nonce'>

/** The EIP-3009 event for a used nonce. */
export const authorizationUsed = {
  type: 'event',
  name: 'AuthorizationUsed',
  inputs: [
    { name: 'authorizer', type: 'address', indexed: true },
    { name: 'nonce', type: 'bytes32', indexed: true },
  ],
} as const

/**
 * Returns whether the events of a successful transaction show that the authorization paid the price or was
 * used for something else. Returns `unclear` if the payer used several authorizations in one transaction: the
 * transfers cannot be attributed, and one transfer must not count for two payments.
 */
export function paymentIn(
  logs: readonly Log[],
  { asset, payTo, atomic }: Pick<PaymentTerms, 'asset' | 'payTo' | 'atomic'>,
  { from, nonce }: Authorization,
): 'paid' | 'not paid' | 'unclear' {
  const ofAsset = logs.filter(({ address }) => isSame(address, asset))
  const uses = parseEventLogs({ abi: [authorizationUsed], logs: ofAsset })
  const ofPayer = uses.filter(({ args }) => isSame(args.authorizer, from))
  if (!ofPayer.some(({ args }) => isSame(args.nonce, nonce))) return 'not paid'
  if (ofPayer.length > 1) return 'unclear'
  const transfers = parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs: ofAsset })
  const isPrice = ({ args }: (typeof transfers)[number]) =>
    isSame(args.from, from) && isSame(args.to, payTo) && args.value === BigInt(atomic)
  return transfers.some(isPrice) ? 'paid' : 'not paid'
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
