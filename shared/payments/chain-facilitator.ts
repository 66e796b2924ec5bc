import type { x402Facilitator } from '@x402/core/facilitator'
import type { PublicClient } from 'viem'
import type { PaymentTerms } from '../store/payment-store.ts'
import {
  codeOf,
  type Facilitator,
  type LookedUp,
  type Offered,
  type Settlement,
  settlementOf,
  type Verified,
} from './facilitator.ts'
import { payloadOf, requirementsOf } from './x402.ts'

interface Options {
  rpcUrl: string
  chainId: number
  /** Pays the gas. Absent: the chain is looked at, and somebody else settles. */
  privateKey: `0x${string}` | undefined
  timeoutMs: number
}

type Hex = `0x${string}`

/** EIP-3009: how a chain tells that a nonce was used, and how. */
const inputs = [
  { name: 'authorizer', type: 'address', indexed: true },
  { name: 'nonce', type: 'bytes32', indexed: true },
] as const
const used = { type: 'event', name: 'AuthorizationUsed', inputs } as const
const canceled = { type: 'event', name: 'AuthorizationCanceled', inputs } as const
const authorizationState = [
  {
    type: 'function',
    name: 'authorizationState',
    stateMutability: 'view',
    inputs: [
      { name: 'authorizer', type: 'address' },
      { name: 'nonce', type: 'bytes32' },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
] as const

/** A transfer is valid for a day at most; blocks of two seconds, in steps that nodes answer. */
const [blocksBack, blocksAtOnce] = [45_000n, 9_000n]
/** After its time a transfer can no longer be made; some blocks more, against those that are taken back. */
const expiredForSeconds = 60n

/** The facilitator of the official packages on a chain of ours, and a look at what became of a transfer. */
export class ChainFacilitator implements Facilitator {
  readonly sandbox = false
  readonly #client: PublicClient
  readonly #facilitator: x402Facilitator | undefined

  private constructor(client: PublicClient, facilitator: x402Facilitator | undefined) {
    this.#client = client
    this.#facilitator = facilitator
  }

  static async open({ rpcUrl, chainId, privateKey, timeoutMs }: Options): Promise<ChainFacilitator> {
    const { createPublicClient, createWalletClient, defineChain, http, publicActions } = await import('viem')
    const chain = defineChain({
      id: chainId,
      name: `eip155:${chainId}`,
      nativeCurrency: { name: 'native', symbol: 'NATIVE', decimals: 18 },
      rpcUrls: { default: { http: [rpcUrl] } },
    })
    const transport = http(rpcUrl, { timeout: timeoutMs, retryCount: 1 })
    const client = createPublicClient({ chain, transport })
    if (privateKey === undefined) return new ChainFacilitator(client as PublicClient, undefined)
    const [
      { privateKeyToAccount, nonceManager },
      { x402Facilitator },
      { toFacilitatorEvmSigner },
      { ExactEvmScheme },
    ] = await Promise.all([
      import('viem/accounts'),
      import('@x402/core/facilitator'),
      import('@x402/evm'),
      import('@x402/evm/exact/facilitator'),
    ])
    const account = privateKeyToAccount(privateKey, { nonceManager })
    const wallet = createWalletClient({ account, chain, transport, pollingInterval: 500 }).extend(
      publicActions,
    )
    const signer = toFacilitatorEvmSigner(Object.assign(wallet, { address: account.address }) as never, {
      confirmationTimeoutMs: 45_000,
    })
    const facilitator = new x402Facilitator().register(`eip155:${chainId}`, new ExactEvmScheme(signer))
    return new ChainFacilitator(client as PublicClient, facilitator)
  }

  async verify(offered: Offered): Promise<Verified> {
    const { isValid, invalidReason } = await this.#settler.verify(
      payloadOf(offered.terms, offered.transfer) as never,
      requirementsOf(offered.terms) as never,
    )
    return isValid ? { valid: true } : { valid: false, reason: codeOf(invalidReason) }
  }

  /** Waits for a block no longer than the signal says; what was sent is sent, and is looked up. */
  async settle(offered: Offered, signal: AbortSignal): Promise<Settlement> {
    const { promise: late, resolve } = Promise.withResolvers<Settlement>()
    const giveUp = () => resolve({ state: 'unknown', reason: 'timeout' })
    signal.addEventListener('abort', giveUp, { once: true })
    if (signal.aborted) giveUp()
    try {
      return await Promise.race([this.#settle(offered), late])
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  async #settle(offered: Offered): Promise<Settlement> {
    try {
      const answer = await this.#settler.settle(
        payloadOf(offered.terms, offered.transfer) as never,
        requirementsOf(offered.terms) as never,
      )
      const settlement = settlementOf(answer, offered, false)
      if (settlement.state !== 'unknown') return settlement
      const seen = await this.lookUp(offered)
      return seen.state === 'open' ? settlement : seen
    } catch {
      return { state: 'unknown', reason: 'unreachable' }
    }
  }

  async lookUp(offered: Offered): Promise<LookedUp> {
    try {
      return await this.#lookUp(offered)
    } catch {
      return { state: 'unknown', reason: 'unreachable' }
    }
  }

  async #lookUp({ terms, transfer }: Offered): Promise<LookedUp> {
    const { from, nonce, validBefore } = transfer.authorization
    // The block first: what the state says is at least as new.
    const block = await this.#client.getBlock({ blockTag: 'latest' })
    const isUsed = await this.#client.readContract({
      address: terms.asset as Hex,
      abi: authorizationState,
      functionName: 'authorizationState',
      args: [from as Hex, nonce as Hex],
    })
    if (!isUsed) {
      const over = block.timestamp > BigInt(validBefore) + expiredForSeconds
      return over
        ? { state: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' }
        : { state: 'open' }
    }
    for await (const txHash of this.#usesOf(terms.asset as Hex, from as Hex, nonce as Hex)) {
      const paid = await this.#isPaidBy(txHash, terms, from)
      // The payer may have used the nonce for something else before us.
      return paid
        ? { state: 'settled', txHash, payer: from }
        : { state: 'failed', reason: 'authorization_used' }
    }
    const isCanceled = await this.#isCanceled(terms.asset as Hex, from as Hex, nonce as Hex)
    if (isCanceled) return { state: 'failed', reason: 'authorization_canceled' }
    return { state: 'unknown', reason: 'transfer_not_found' }
  }

  async *#usesOf(address: Hex, authorizer: Hex, nonce: Hex): AsyncGenerator<Hex> {
    for await (const range of this.#ranges()) {
      const logs = await this.#client.getLogs({ address, event: used, args: { authorizer, nonce }, ...range })
      for (const { transactionHash } of logs) yield transactionHash
    }
  }

  async #isCanceled(address: Hex, authorizer: Hex, nonce: Hex): Promise<boolean> {
    for await (const range of this.#ranges()) {
      const logs = await this.#client.getLogs({
        address,
        event: canceled,
        args: { authorizer, nonce },
        ...range,
      })
      if (logs.length > 0) return true
    }
    return false
  }

  /** From the newest block back. */
  async *#ranges(): AsyncGenerator<{ fromBlock: bigint; toBlock: bigint }> {
    const latest = await this.#client.getBlockNumber({ cacheTime: 0 })
    const oldest = latest > blocksBack ? latest - blocksBack : 0n
    for (let toBlock = latest; toBlock >= oldest; toBlock -= blocksAtOnce) {
      const fromBlock = toBlock >= oldest + blocksAtOnce ? toBlock - blocksAtOnce + 1n : oldest
      yield { fromBlock, toBlock }
    }
  }

  /** Whether the transaction moved at least the price from the payer to us. */
  async #isPaidBy(hash: Hex, { asset, payTo, atomic }: PaymentTerms, payer: string): Promise<boolean> {
    const { parseEventLogs, erc20Abi } = await import('viem')
    const receipt = await this.#client.getTransactionReceipt({ hash })
    const transfers = parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs: receipt.logs })
    return (
      receipt.status === 'success' &&
      transfers.some(
        ({ address, args }) =>
          isSame(address, asset) &&
          isSame(args.from, payer) &&
          isSame(args.to, payTo) &&
          args.value === BigInt(atomic),
      )
    )
  }

  get #settler(): x402Facilitator {
    if (this.#facilitator === undefined)
      throw new Error('PAYMENT_SIGNER_KEY_FILE is not set: this chain is only looked at')
    return this.#facilitator
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
