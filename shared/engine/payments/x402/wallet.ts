import type { Requirements, Resource } from './x402.ts'

/** A signed x402 version 2 payment. The `PAYMENT-SIGNATURE` header carries its JSON in base64. */
export interface SignedPayment {
  x402Version: 2
  accepted: Requirements
  payload: unknown
}

/**
 * Signs a transfer for exactly these requirements with the official client. There is no spending limit,
 * because the caller decides what may be paid. Loads the client and viem on first use.
 */
export async function signPayment(
  privateKey: `0x${string}`,
  request: { requirements: Requirements; resource?: Resource },
): Promise<SignedPayment> {
  const [{ x402Client }, { ExactEvmScheme }, { privateKeyToAccount }] = await Promise.all([
    import('@x402/core/client'),
    import('@x402/evm/exact/client'),
    import('viem/accounts'),
  ])
  const client = new x402Client()
    .setSpendControls({ allowedAssets: true, maxAmountPerPayment: false })
    .register('eip155:*', new ExactEvmScheme(privateKeyToAccount(privateKey)))
  const { requirements, resource } = request
  const required = { x402Version: 2, accepts: [requirements], ...(resource !== undefined && { resource }) }
  const payload = await client.createPaymentPayload(required as never)
  return { ...payload, x402Version: 2, accepted: requirements }
}

/** Generates a key in the format of PAYMENT_SIGNER_KEY_FILE, which is `0x` followed by 64 hex digits. */
export async function newWalletKey(): Promise<`0x${string}`> {
  const { generatePrivateKey } = await import('viem/accounts')
  return generatePrivateKey()
}

/** Returns the address for a key. @throws Error when the key is invalid */
export async function addressOf(privateKey: `0x${string}`): Promise<string> {
  const { privateKeyToAccount } = await import('viem/accounts')
  return privateKeyToAccount(privateKey).address
}

export function encodePayment(payment: SignedPayment): string {
  return Buffer.from(JSON.stringify(payment), 'utf8').toString('base64')
}
