import type { MatchedTransfer } from './facilitator.ts'

const types = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** Half the order of secp256k1. Contracts accept only the signature with the smaller `s` (EIP-2). */
const halfOrder = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

export type Hex = `0x${string}`

/** @throws Error when the text does not start with `0x` */
export function hexOf(text: string): Hex {
  if (!isHex(text)) throw new Error('a hexadecimal value must start with 0x')
  return text
}

const isHex = (text: string): text is Hex => text.startsWith('0x')

/** Returns whether the payer's key signed exactly this transfer (EIP-712, EIP-3009). Loads viem on first use. */
export async function isSignedByPayer({ terms, transfer }: MatchedTransfer): Promise<boolean> {
  const { signature, authorization } = transfer
  if (!isPlainSignature(signature)) return false
  const { verifyTypedData } = await import('viem/utils')
  try {
    return await verifyTypedData({
      address: hexOf(authorization.from),
      domain: {
        name: terms.extra.name,
        version: terms.extra.version,
        chainId: chainIdOf(terms.network),
        verifyingContract: hexOf(terms.asset.toLowerCase()),
      },
      types,
      primaryType: 'TransferWithAuthorization',
      message: {
        from: hexOf(authorization.from.toLowerCase()),
        to: hexOf(authorization.to.toLowerCase()),
        value: BigInt(authorization.value),
        validAfter: BigInt(authorization.validAfter),
        validBefore: BigInt(authorization.validBefore),
        nonce: hexOf(authorization.nonce),
      },
      signature: hexOf(signature),
    })
  } catch {
    // A malformed signature is not valid.
    return false
  }
}

export function chainIdOf(network: string): number {
  return Number(network.slice('eip155:'.length))
}

function isPlainSignature(signature: string): boolean {
  if (signature.length !== 132) return false
  return BigInt(`0x${signature.slice(66, 130)}`) <= halfOrder && /(1b|1c)$/i.test(signature)
}
