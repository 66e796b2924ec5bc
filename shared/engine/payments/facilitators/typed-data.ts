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

/** Half the order of secp256k1: of the two signatures of a message, contracts take the one with the small `s`. */
const halfOrder = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

type Hex = `0x${string}`

/** True when the payer's key signed exactly this transfer (EIP-712, EIP-3009). Loads viem when it is first asked. */
export async function isSignedByPayer({ terms, transfer }: MatchedTransfer): Promise<boolean> {
  const { signature, authorization } = transfer
  if (!isPlainSignature(signature)) return false
  const { verifyTypedData } = await import('viem/utils')
  try {
    return await verifyTypedData({
      address: authorization.from as Hex,
      domain: {
        name: terms.extra.name,
        version: terms.extra.version,
        chainId: chainIdOf(terms.network),
        verifyingContract: terms.asset.toLowerCase() as Hex,
      },
      types,
      primaryType: 'TransferWithAuthorization',
      message: {
        from: authorization.from.toLowerCase() as Hex,
        to: authorization.to.toLowerCase() as Hex,
        value: BigInt(authorization.value),
        validAfter: BigInt(authorization.validAfter),
        validBefore: BigInt(authorization.validBefore),
        nonce: authorization.nonce as Hex,
      },
      signature: signature as Hex,
    })
  } catch {
    // What cannot be read as a signature is none.
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
