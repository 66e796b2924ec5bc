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
  type VerifyResult,
} from './facilitator.ts'

interface Options {
  rpcUrl: string
  chainId: number
  /** Pays the gas. Absent: the chain is looked at, and somebody else settles. */
  privateKey: `0x${string}` | undefined
  /** Id of the agent that is paid, a UUID: its transactions carry it. */
  agentId: string
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

  readonly #agentId: string
  readonly #node: Node

  private constructor(parts: {
    client: PublicClient
    facilitator?: x402Facilitator
    agentId: string
    node: Node
  }) {
    this.#client = parts.client
    this.#facilitator = parts.facilitator
    this.#agentId = idOf(parts.agentId)
    this.#node = parts.node
  }

  static async open({ rpcUrl, chainId, privateKey, agentId, timeoutMs }: Options): Promise<ChainFacilitator> {
    const { createPublicClient, createWalletClient, defineChain, http, publicActions } = await import('viem')
    const chain = defineChain({
      id: chainId,
      name: `eip155:${chainId}`,
      nativeCurrency: { name: 'native', symbol: 'NATIVE', decimals: 18 },
      rpcUrls: { default: { http: [rpcUrl] } },
    })
    const node: Node = { failures: 0 }
    const transport = counted(http(rpcUrl, { timeout: timeoutMs, retryCount: 1 }), node)
    const client = createPublicClient({ chain, transport }) as PublicClient
    if (privateKey === undefined) return new ChainFacilitator({ client, agentId, node })
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
    const writeContract = (call: object) => wallet.writeContract({ ...call, dataSuffix } as never)
    // The official scheme does not wait for this answer where another check refuses: a rejection would end the process.
    const getCode = (asked: never) => wallet.getCode(asked).catch(() => undefined)
    const ours = { ...wallet, address: account.address, writeContract, getCode }
    const signer = toFacilitatorEvmSigner(ours as never, { confirmationTimeoutMs: 45_000 })
    const facilitator = new x402Facilitator().register(`eip155:${chainId}`, new ExactEvmScheme(signer))
    return new ChainFacilitator({ client, facilitator, agentId, node })
  }

  async verify(offered: MatchedTransfer, signal: AbortSignal): Promise<VerifyResult> {
    const before = this.#node.failures
    const asked = this.#settler.verify(
      payloadOf(offered.terms, offered.transfer) as never,
      requirementsOf(offered.terms) as never,
    )
    // The error itself tells the signature, and the address of the node with its key.
    const answer = asked.catch(() => 'unreachable' as const)
    const verified = await orLate(answer, 'unreachable' as const, signal)
    if (verified !== 'unreachable' && verified.isValid) return { valid: true }
    if (verified === 'unreachable' || this.#node.failures !== before)
      throw new Error('the chain could not be asked')
    return { valid: false, reason: codeOf(verified.invalidReason) }
  }

  /** Waits for a block no longer than the signal says; what was sent is sent, and is looked up. */
  settle(offered: MatchedTransfer, signal: AbortSignal): Promise<Settlement> {
    return orLate(this.#settle(offered), { state: 'unknown', reason: 'timeout' }, signal)
  }

  async #settle(offered: MatchedTransfer): Promise<Settlement> {
    const before = this.#node.failures
    try {
      const answer = await this.#settler.settle(
        payloadOf(offered.terms, offered.transfer) as never,
        requirementsOf(offered.terms) as never,
      )
      const failed = !answer.success && this.#node.failures !== before
      const settlement = settlementOf(answer, offered, failed)
      if (settlement.state !== 'unknown') return settlement
      const seen = await this.lookUp(offered)
      return seen.state === 'open' ? settlement : seen
    } catch {
      return { state: 'unknown', reason: 'unreachable' }
    }
  }

  lookUp(offered: MatchedTransfer, signal?: AbortSignal): Promise<LookupResult> {
    const looked = this.#lookUp(offered).catch(
      (): LookupResult => ({ state: 'unknown', reason: 'unreachable' }),
    )
    return signal === undefined ? looked : orLate(looked, { state: 'unknown', reason: 'timeout' }, signal)
  }

  async #lookUp({ terms, transfer }: MatchedTransfer): Promise<LookupResult> {
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
      const outcome = await this.#outcomeOf(txHash, terms, transfer)
      if (outcome === 'paid') return { state: 'settled', txHash, payer: from }
      if (outcome === 'unclear') return { state: 'unknown', reason: 'several_authorizations' }
      return { state: 'failed', reason: 'authorization_used' }
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

  /** The payer may have used the nonce for something else before us, or paid another agent of the same address with it. */
  async #outcomeOf(hash: Hex, terms: PaymentTerms, { authorization }: SignedTransfer) {
    const { paidIn } = await import('./chain-transfer.ts')
    const [receipt, { input }] = await Promise.all([
      this.#client.getTransactionReceipt({ hash }),
      this.#client.getTransaction({ hash }),
    ])
    const by = settledBy(input)
    if (receipt.status !== 'success' || (by !== undefined && by !== this.#agentId)) return 'not paid'
    return paidIn(receipt.logs, terms, authorization)
  }

  get #settler(): x402Facilitator {
    if (this.#facilitator === undefined)
      throw new Error('PAYMENT_SIGNER_KEY_FILE is not set: this chain is only looked at')
    return this.#facilitator
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** What comes first: the answer, or the abort of the signal. */
async function orLate<T>(answer: Promise<T>, late: T, signal: AbortSignal): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>()
  const giveUp = () => resolve(late)
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  try {
    return await Promise.race([answer, promise])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** Stands behind the call data of what an agent settles; contracts do not read it. */
const mark = Buffer.from('parley').toString('hex')
const idOf = (agentId: string) => agentId.replaceAll('-', '').toLowerCase()

/** @param agentId a UUID */
const tagOf = (agentId: string): Hex => `0x${mark}${idOf(agentId)}`

/** The agent that the transaction was settled by, where it was one of ours. */
function settledBy(input: string): string | undefined {
  return new RegExp(`${mark}([\\da-f]{32})$`).exec(input.toLowerCase())?.[1]
}

/** How often the node did not answer. What the official scheme says no to meanwhile may be good. */
interface Node {
  failures: number
}

/** Counts them. */
function counted(plain: Transport, node: Node): Transport {
  return (options) => {
    const made = plain(options)
    const request = async (asked: never) => {
      try {
        return (await made.request(asked)) as never
      } catch (error) {
        // What a node answers has a code.
        if (typeof (error as { code?: unknown }).code !== 'number') node.failures += 1
        throw error
      }
    }
    return { ...made, request: request as never }
  }
}
