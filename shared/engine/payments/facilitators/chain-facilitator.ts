import type { x402Facilitator } from '@x402/core/facilitator'
import type { PublicClient, Transport } from 'viem'
import type { PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'
import { payloadOf, requirementsOf } from '../x402/x402.ts'
import {
  codeOf,
  type Facilitator,
  type LookupResult,
  type MatchedTransfer,
  type Settlement,
  settlementOf,
  type TransferSource,
  type VerifyResult,
} from './facilitator.ts'
import { type Hex, hexOf } from './typed-data.ts'

interface Options {
  rpcUrl: string
  chainId: number
  /** The key that pays the gas. Without it, transfers can be looked up but not settled. */
  privateKey: `0x${string}` | undefined
  /** The agent's UUID, which its transactions carry. */
  agentId: string
  timeoutMs: number
  /** Confirmations that a plain transfer needs. Default 3. */
  confirmations?: number | undefined
}

/** The EIP-3009 events and the function that report the state of a nonce. */
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

/**
 * `blocksBack` covers one day, the longest validity of a transfer, in blocks of two seconds.
 * `blocksPerRequest` is a range that nodes accept in one request.
 */
const [blocksBack, blocksPerRequest] = [45_000n, 9_000n]
/** Margin after a transfer expires, which allows for block reorganizations. */
const reorgMarginSeconds = 60n

/** Settles on a chain with the official x402 facilitator packages, and looks up past transfers. */
export class ChainFacilitator implements Facilitator {
  readonly sandbox = false
  readonly transfers: TransferSource
  readonly #client: PublicClient
  readonly #facilitator: x402Facilitator | undefined

  readonly #agentId: string
  readonly #nodeHealth: NodeHealth

  private constructor(parts: {
    client: PublicClient
    transfers: TransferSource
    facilitator?: x402Facilitator
    agentId: string
    nodeHealth: NodeHealth
  }) {
    this.#client = parts.client
    this.transfers = parts.transfers
    this.#facilitator = parts.facilitator
    this.#agentId = idOf(parts.agentId)
    this.#nodeHealth = parts.nodeHealth
  }

  static async open(options: Options): Promise<ChainFacilitator> {
    const { rpcUrl, chainId, privateKey, agentId, timeoutMs, confirmations = 3 } = options
    const { createPublicClient, createWalletClient, defineChain, http, publicActions } = await import('viem')
    const chain = defineChain({
      id: chainId,
      name: `eip155:${chainId}`,
      nativeCurrency: { name: 'native', symbol: 'NATIVE', decimals: 18 },
      rpcUrls: { default: { http: [rpcUrl] } },
    })
    const nodeHealth: NodeHealth = { failures: 0 }
    const transport = countFailures(http(rpcUrl, { timeout: timeoutMs, retryCount: 1 }), nodeHealth)
    const client = createPublicClient({ chain, transport })
    const { ChainTransfers } = await import('./chain-transfers.ts')
    const transfers = new ChainTransfers({ client, chainId, confirmations })
    if (privateKey === undefined) return new ChainFacilitator({ client, transfers, agentId, nodeHealth })
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
    const dataSuffix = tagOf(agentId)
    const writeContract = (call: Parameters<typeof wallet.writeContract>[0]) =>
      wallet.writeContract({ ...call, dataSuffix })
    // The official scheme does not await this call when another check fails, so a rejection would end the
    // process.
    const getCode = (args: Parameters<typeof wallet.getCode>[0]) =>
      wallet.getCode(args).catch(() => undefined)
    const tagged = { ...wallet, address: account.address, writeContract, getCode }
    const signer = toFacilitatorEvmSigner(tagged as never, { confirmationTimeoutMs: 45_000 })
    const facilitator = new x402Facilitator().register(`eip155:${chainId}`, new ExactEvmScheme(signer))
    return new ChainFacilitator({ client, transfers, facilitator, agentId, nodeHealth })
  }

  async verify(offered: MatchedTransfer, signal: AbortSignal): Promise<VerifyResult> {
    const failuresBefore = this.#nodeHealth.failures
    const request = this.#settler.verify(
      payloadOf(offered.terms, offered.transfer),
      requirementsOf(offered.terms),
    )
    // The error contains the signature and the node's URL, which includes its API key.
    const answer = request.catch(() => 'unreachable' as const)
    const verified = await orOnAbort(answer, 'unreachable' as const, signal)
    if (verified !== 'unreachable' && verified.isValid) return { valid: true }
    if (verified === 'unreachable' || this.#nodeHealth.failures !== failuresBefore)
      throw new Error('the node of the chain did not respond')
    return { valid: false, reason: codeOf(verified.invalidReason) }
  }

  /** Stops waiting for a block when the signal aborts. The transaction remains sent and is looked up later. */
  settle(offered: MatchedTransfer, signal: AbortSignal): Promise<Settlement> {
    return orOnAbort(this.#settle(offered), { state: 'unknown', reason: 'timeout' }, signal)
  }

  async #settle(offered: MatchedTransfer): Promise<Settlement> {
    const failuresBefore = this.#nodeHealth.failures
    try {
      const answer = await this.#settler.settle(
        payloadOf(offered.terms, offered.transfer),
        requirementsOf(offered.terms),
      )
      const failed = !answer.success && this.#nodeHealth.failures !== failuresBefore
      const settlement = settlementOf(answer, offered, failed)
      if (settlement.state !== 'unknown') return settlement
      const found = await this.lookUp(offered)
      return found.state === 'open' ? settlement : found
    } catch {
      return { state: 'unknown', reason: 'unreachable' }
    }
  }

  lookUp(offered: MatchedTransfer, signal?: AbortSignal): Promise<LookupResult> {
    const result = this.#lookUp(offered).catch(
      (): LookupResult => ({ state: 'unknown', reason: 'unreachable' }),
    )
    return signal === undefined ? result : orOnAbort(result, { state: 'unknown', reason: 'timeout' }, signal)
  }

  async #lookUp({ terms, transfer }: MatchedTransfer): Promise<LookupResult> {
    const { from, validBefore } = transfer.authorization
    const [asset, payer, nonce] = [hexOf(terms.asset), hexOf(from), hexOf(transfer.authorization.nonce)]
    // Reads the block first, so that the nonce's state is at least as recent.
    const block = await this.#client.getBlock({ blockTag: 'latest' })
    const isUsed = await this.#client.readContract({
      address: asset,
      abi: authorizationState,
      functionName: 'authorizationState',
      args: [payer, nonce],
    })
    if (!isUsed) {
      const isExpired = block.timestamp > BigInt(validBefore) + reorgMarginSeconds
      return isExpired
        ? { state: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' }
        : { state: 'open' }
    }
    for await (const txHash of this.#usesOf(asset, payer, nonce)) {
      const outcome = await this.#outcomeOf(txHash, terms, transfer)
      if (outcome === 'paid') return { state: 'settled', txHash, payer: from }
      if (outcome === 'unclear') return { state: 'unknown', reason: 'several_authorizations' }
      return { state: 'failed', reason: 'authorization_used' }
    }
    const isCanceled = await this.#isCanceled(asset, payer, nonce)
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

  /** Yields block ranges, starting with the newest. */
  async *#ranges(): AsyncGenerator<{ fromBlock: bigint; toBlock: bigint }> {
    const latest = await this.#client.getBlockNumber({ cacheTime: 0 })
    const oldest = latest > blocksBack ? latest - blocksBack : 0n
    for (let toBlock = latest; toBlock >= oldest; toBlock -= blocksPerRequest) {
      const fromBlock = toBlock >= oldest + blocksPerRequest ? toBlock - blocksPerRequest + 1n : oldest
      yield { fromBlock, toBlock }
    }
  }

  /** The payer may have used the nonce in another transfer, or paid another agent with the same address. */
  async #outcomeOf(hash: Hex, terms: PaymentTerms, { authorization }: SignedTransfer) {
    const { paymentIn } = await import('./chain-transfer.ts')
    const [receipt, { input }] = await Promise.all([
      this.#client.getTransactionReceipt({ hash }),
      this.#client.getTransaction({ hash }),
    ])
    const settler = settledBy(input)
    if (receipt.status !== 'success' || (settler !== undefined && settler !== this.#agentId))
      return 'not paid'
    return paymentIn(receipt.logs, terms, authorization)
  }

  get #settler(): x402Facilitator {
    if (this.#facilitator === undefined)
      throw new Error('PAYMENT_SIGNER_KEY_FILE is not set: this chain is used for look-ups only')
    return this.#facilitator
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Resolves with the response, or with `onAbort` if the signal aborts first. */
async function orOnAbort<T>(answer: Promise<T>, onAbort: T, signal: AbortSignal): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>()
  const giveUp = () => resolve(onAbort)
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  try {
    return await Promise.race([answer, promise])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** Appended to the call data of the transactions that an agent settles. Contracts ignore it. */
const mark = Buffer.from('parley').toString('hex')
const idOf = (agentId: string) => agentId.replaceAll('-', '').toLowerCase()

/** @param agentId a UUID */
const tagOf = (agentId: string): Hex => `0x${mark}${idOf(agentId)}`

/** Returns the id of the Parley agent that sent the transaction, if any. */
function settledBy(input: string): string | undefined {
  return new RegExp(`${mark}([\\da-f]{32})$`).exec(input.toLowerCase())?.[1]
}

/**
 * Counts the requests that received no response from the node. During such failures, a refusal by the
 * official scheme is not reliable.
 */
interface NodeHealth {
  failures: number
}

function countFailures(transport: Transport, health: NodeHealth): Transport {
  return (options) => {
    const inner = transport(options)
    const request: typeof inner.request = async (args, requestOptions) => {
      try {
        return await inner.request(args, requestOptions)
      } catch (error) {
        // An error response from the node has a code.
        const hasCode = error instanceof Error && 'code' in error && typeof error.code === 'number'
        if (!hasCode) health.failures += 1
        throw error
      }
    }
    return { ...inner, request }
  }
}
