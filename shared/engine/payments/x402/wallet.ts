import type { Requirements, Resource } from './x402.ts'

/** A payment as x402 version 2 writes it; goes, as base64 of its JSON, into the header `PAYMENT-SIGNATURE`. */
export interface SignedPayment {
  x402Version: 2
  accepted: Requirements
  payload: unknown
}

/**
 * Signs a transfer for exactly these requirements, by the official client. What may be paid is for the caller to decide
 * before. Loads the client and viem when it is first used.
 */
export async function signPayment(
  privateKey: `0x${string}`,
  asked: { requirements: Requirements; resource?: Resource },
): Promise<SignedPayment> {
  const [{ x402Client }, { ExactEvmScheme }, { privateKeyToAccount }] = await Promise.all([
    import('@x402/core/client'),
    import('@x402/evm/exact/client'),
    import('viem/accounts'),
  ])
  const client = new x402Client()
    .setSpendControls({ allowedAssets: true, maxAmountPerPayment: false })
    .register('eip155:*', new ExactEvmScheme(privateKeyToAccount(privateKey)))
  const { requirements, resource } = asked
  const required = { x402Version: 2, accepts: [requirements], ...(resource !== undefined && { resource }) }
  return (await client.createPaymentPayload(required as never)) as never
}

/** A new key, as the 64 hex digits of PAYMENT_SIGNER_KEY_FILE with `0x` before them. */
export async function newWalletKey(): Promise<`0x${string}`> {
  const { generatePrivateKey } = await import('viem/accounts')
  return generatePrivateKey()
}

/** @throws Error when it is no key */
export async function addressOf(privateKey: `0x${string}`): Promise<string> {
  const { privateKeyToAccount } = await import('viem/accounts')
  return privateKeyToAccount(privateKey).address
}

export function encodePayment(payment: SignedPayment): string {
  return Buffer.from(JSON.stringify(payment), 'utf8').toString('base64')
}
