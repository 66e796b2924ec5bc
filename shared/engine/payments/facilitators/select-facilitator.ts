import { ConfigError } from '@parley/kit/process/settings'
import type { Price } from '@parley/wire/model/price'
import type { PaymentStore } from '../../store/payment-store.ts'
import type { Facilitator } from './facilitator.ts'

/** The settings that select the facilitator. */
export interface PaymentSettings {
  facilitatorUrl: string | undefined
  rpcUrl: string | undefined
  signerKeyFile: string | undefined
  sandbox: boolean
  /** Confirmations that a plain transfer needs. Default 3. */
  transferConfirmations?: number | undefined
  /** The agent's UUID. */
  agentId: string
}

/**
 * Opens the configured facilitator, and loads its libraries on demand.
 * @throws ConfigError when no facilitator is configured, or when it does not match the prices
 */
export async function selectFacilitator(
  settings: PaymentSettings,
  prices: readonly Price[],
  payments: PaymentStore,
): Promise<Facilitator> {
  const { facilitatorUrl, rpcUrl, signerKeyFile, sandbox, agentId, transferConfirmations } = settings
  requireNoPassword(facilitatorUrl)
  if (rpcUrl !== undefined) {
    if (facilitatorUrl === undefined && signerKeyFile === undefined) {
      throw new ConfigError([
        'PAYMENT_RPC_URL requires PAYMENT_SIGNER_KEY_FILE, or PAYMENT_FACILITATOR_URL: set PAYMENT_SIGNER_KEY_FILE to the file with the key that pays the gas.',
      ])
    }
    const { openChain } = await import('./chain.ts')
    const chain = await openChain(
      {
        rpcUrl,
        agentId,
        signerKeyFile: facilitatorUrl === undefined ? signerKeyFile : undefined,
        confirmations: transferConfirmations,
      },
      prices,
    )
    if (facilitatorUrl === undefined) return chain
    const { HttpFacilitator } = await import('./http-facilitator.ts')
    return new HttpFacilitator({ url: facilitatorUrl, chain })
  }
  if (facilitatorUrl !== undefined) {
    const { HttpFacilitator } = await import('./http-facilitator.ts')
    return new HttpFacilitator({ url: facilitatorUrl })
  }
  if (sandbox) {
    const { SandboxFacilitator } = await import('./sandbox.ts')
    return new SandboxFacilitator(payments)
  }
  throw new ConfigError([
    'PAYMENT_FACILITATOR_URL, or PAYMENT_RPC_URL and PAYMENT_SIGNER_KEY_FILE, must be set: this agent has a price. ' +
      'PAYMENT_SANDBOX=yes takes test money instead.',
  ])
}

/** Rejects a URL with credentials, because the error that `fetch` throws would log them. @throws ConfigError */
function requireNoPassword(facilitatorUrl: string | undefined): void {
  const { username = '', password = '' } = (facilitatorUrl && URL.parse(facilitatorUrl)) || {}
  if (username + password !== '')
    throw new ConfigError(['PAYMENT_FACILITATOR_URL must not hold a user name or a password.'])
}
