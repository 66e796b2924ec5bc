import { createHash } from 'node:crypto'
import type { PaymentStore, PaymentTerms } from '../../store/payment-store.ts'
import type { Facilitator, LookupResult, MatchedTransfer, Settlement, VerifyResult } from './facilitator.ts'
import { isTestNetwork } from './test-networks.ts'
import { isSignedByPayer } from './typed-data.ts'

/** The initial balance of each asset in every wallet, in whole units. */
const initialBalance = 1000n

/** The chain that replaces networks with real money. */
const localChain = 'eip155:31337'

/**
 * Converts prices to test money. The prices are on a test chain, so that a signed transfer has no value
 * anywhere else.
 */
export function sandboxTerms<T extends PaymentTerms>(terms: readonly T[]): T[] {
  const moved = terms.map((one) => (isTestNetwork(one.network) ? one : { ...one, network: localChain }))
  const seen = new Set<string>()
  return moved.filter(({ network, asset }) => {
    const key = `${network} ${asset.toLowerCase()}`
    return !seen.has(key) && seen.add(key)
  })
}

/**
 * A facilitator without a chain. It checks the signature, amount, time and nonce, and moves test money in the
 * store.
 */
export class SandboxFacilitator implements Facilitator {
  readonly sandbox = true
  readonly #payments: PaymentStore

  constructor(payments: PaymentStore) {
    this.#payments = payments
  }

  async verify(offered: MatchedTransfer): Promise<VerifyResult> {
    if (!(await isSignedByPayer(offered))) return { valid: false, reason: 'invalid_exact_evm_signature' }
    if ((await this.#payments.findTestTransfer(offered.nonceKey)) !== undefined)
      return { valid: false, reason: 'invalid_exact_evm_nonce_already_used' }
    const { purse, filledWith } = purseOf(offered)
    if ((await this.#payments.testPurse(purse, filledWith)) < BigInt(offered.terms.atomic))
      return { valid: false, reason: 'invalid_exact_evm_insufficient_balance' }
    return { valid: true }
  }

  async settle(offered: MatchedTransfer): Promise<Settlement> {
    const { nonceKey, terms, transfer } = offered
    const txHash = `0x${createHash('sha256').update(`test money ${nonceKey}`).digest('hex')}`
    try {
      const atomic = BigInt(terms.atomic)
      const moved = await this.#payments.moveTestMoney({ nonceKey, atomic, txHash, ...purseOf(offered) })
      if (moved === 'insufficient')
        return { state: 'failed', reason: 'invalid_exact_evm_insufficient_balance' }
      // With `already`, an earlier attempt moved the money but got no response. The ledger claims each nonce
      // once.
      return { state: 'settled', txHash, payer: transfer.authorization.from }
    } catch {
      return { state: 'unknown', reason: 'storage' }
    }
  }

  async lookUp({ nonceKey, transfer }: MatchedTransfer): Promise<LookupResult> {
    try {
      const found = await this.#payments.findTestTransfer(nonceKey)
      if (found === undefined) return { state: 'open' }
      return { state: 'settled', txHash: found.txHash, payer: transfer.authorization.from }
    } catch {
      return { state: 'unknown', reason: 'storage' }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function purseOf({ terms, transfer }: MatchedTransfer): { purse: string; filledWith: bigint } {
  return testPurse(terms, transfer.authorization.from)
}

/** Returns the key of an address's test money, and its initial balance in atomic units. */
export function testPurse(
  { network, asset, decimals }: Pick<PaymentTerms, 'network' | 'asset' | 'decimals'>,
  address: string,
): { purse: string; filledWith: bigint } {
  const purse = `${network} ${asset} ${address}`.toLowerCase()
  return { purse, filledWith: initialBalance * 10n ** BigInt(decimals) }
}
