import { privateKeyToAccount } from 'viem/accounts'
import { seconds } from './signing.ts'

/** The payment requirements in the 402 response of a paid agent. */
export interface Requirements {
  network: string
  asset: string
  amount: string
  payTo: string
  extra: { name: string; version: string }
}

const account = privateKeyToAccount(`0x${'5a'.repeat(32)}`)

export const walletAddress = account.address

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

type Hex = `0x${string}`

const isHex = (text: string): text is Hex => text.startsWith('0x')

/** A payment of x402 version 2, signed by the wallet of the recorder; a different `nonce` gives a different payment. */
export async function payment(asked: Requirements, nonce: number, more: { validBefore?: number } = {}) {
  const { network, asset, amount, payTo, extra } = asked
  if (!isHex(asset) || !isHex(payTo)) throw new Error('an address does not start with 0x')
  const bytes: Hex = `0x${nonce.toString(16).padStart(64, '0')}`
  const validBefore = more.validBefore ?? seconds() + 300
  const signature = await account.signTypedData({
    domain: {
      name: extra.name,
      version: extra.version,
      chainId: Number(network.slice('eip155:'.length)),
      verifyingContract: asset,
    },
    types,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: account.address,
      to: payTo,
      value: BigInt(amount),
      validAfter: 0n,
      validBefore: BigInt(validBefore),
      nonce: bytes,
    },
  })
  const authorization = {
    from: account.address,
    to: payTo,
    value: amount,
    validAfter: '0',
    validBefore: String(validBefore),
    nonce: bytes,
  }
  const accepted = { scheme: 'exact', network, asset, amount, payTo }
  return { x402Version: 2, accepted, payload: { signature, authorization } }
}

export const encoded = (payload: object) => Buffer.from(JSON.stringify(payload)).toString('base64')
