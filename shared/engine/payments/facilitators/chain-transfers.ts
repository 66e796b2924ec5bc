import {
  BaseError,
  erc20Abi,
  HttpRequestError,
  type Log,
  type PublicClient,
  parseEventLogs,
  RpcRequestError,
  TimeoutError,
} from 'viem'
import { authorizationUsed } from './chain-transfer.ts'
import {
  ChainReadError,
  type ChainTransfer,
  type TransferLog,
  type TransferQuery,
  type TransferSource,
} from './facilitator.ts'
import { hexOf } from './typed-data.ts'

interface Options {
  client: PublicClient
  chainId: number
  /** Number of blocks, including its own, that a transfer must have. */
  confirmations: number
}

const transferEvent = {
  type: 'event',
  name: 'Transfer',
  inputs: [
    { name: 'from', type: 'address', indexed: true },
    { name: 'to', type: 'address', indexed: true },
    { name: 'value', type: 'uint256', indexed: false },
  ],
} as const

/** Reads plain transfers of tokens from a chain. */
export class ChainTransfers implements TransferSource {
  readonly network: string
  readonly #client: PublicClient
  readonly #confirmations: bigint

  constructor({ client, chainId, confirmations }: Options) {
    this.network = `eip155:${chainId}`
    this.#client = client
    this.#confirmations = BigInt(Math.max(1, confirmations))
  }

  async startBlock(): Promise<number> {
    const latest = await described(this.#client.getBlockNumber({ cacheTime: 0 }))
    return Math.max(0, Number(latest - this.#confirmations))
  }

  async confirmedBlock(): Promise<{ number: number; minedAt: number } | undefined> {
    const latest = await described(this.#client.getBlockNumber({ cacheTime: 0 }))
    const number = latest - this.#confirmations + 1n
    if (number < 0n) return undefined
    const { timestamp } = await described(this.#client.getBlock({ blockNumber: number }))
    return { number: Number(number), minedAt: Number(timestamp) * 1000 }
  }

  async logsIn({ assets, payTos, fromBlock, toBlock }: TransferQuery): Promise<TransferLog[]> {
    const request = this.#client.getLogs({
      address: assets.map(hexOf),
      event: transferEvent,
      args: { to: payTos.map(hexOf) },
      fromBlock: BigInt(fromBlock),
      toBlock: BigInt(toBlock),
      strict: true,
    })
    const logs = await described(request)
    return logs
      .filter(({ args, removed }) => args.value > 0n && !removed)
      .map(({ address, args, blockHash, blockNumber, logIndex, transactionHash }) => ({
        id: `${blockHash} ${logIndex}`,
        asset: address,
        payTo: args.to,
        payer: args.from,
        atomic: args.value.toString(),
        txHash: transactionHash,
        block: Number(blockNumber),
        blockHash,
        logIndex,
      }))
  }

  /**
   * The position of a log in its block changes when a reorganization moves the transaction to another block. The
   * position in the transaction does not, so that it identifies the transfer.
   */
  async transferOf(log: TransferLog): Promise<ChainTransfer> {
    const request = Promise.all([
      this.#client.getTransactionReceipt({ hash: hexOf(log.txHash) }),
      this.#client.getBlock({ blockHash: hexOf(log.blockHash) }),
    ])
    const [receipt, block] = await described(request)
    const position = receipt.logs.findIndex(({ logIndex }) => logIndex === log.logIndex)
    const isSame = receipt.status === 'success' && receipt.blockHash === log.blockHash && position >= 0
    if (!isSame || !isTransfer(receipt.logs[position], log))
      throw new ChainReadError(`the chain was reorganized while transaction ${log.txHash} was read`, false)
    return {
      ...log,
      key: `transfer ${this.network} ${log.txHash} ${position}`.toLowerCase(),
      minedAt: Number(block.timestamp) * 1000,
      authorizationNonce: authorizationOf(receipt.logs, log),
    }
  }
}

function isTransfer(found: Log | undefined, { asset, payTo, payer, atomic }: TransferLog): boolean {
  const [event] = parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs: found ? [found] : [] })
  if (event === undefined) return false
  const { from, to, value } = event.args
  const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
  return (
    isSame(event.address, asset) && isSame(from, payer) && isSame(to, payTo) && value.toString() === atomic
  )
}

/**
 * Returns the nonce of the authorization that made the transfer. A token emits `AuthorizationUsed` before the `Transfer`. A
 * transfer without an earlier one gets a later one of its payer, so that no transfer counts in two ways.
 */
function authorizationOf(logs: readonly Log[], { asset, payer, logIndex }: TransferLog): string | undefined {
  const ofAsset = logs.filter(({ address }) => address.toLowerCase() === asset.toLowerCase())
  const uses = parseEventLogs({ abi: [authorizationUsed], logs: ofAsset })
  const ofPayer = uses.filter(({ args }) => args.authorizer.toLowerCase() === payer.toLowerCase())
  const before = ofPayer.findLast((use) => use.logIndex < logIndex)
  return (before ?? ofPayer[0])?.args.nonce
}

/** HTTP statuses with which nodes refuse a range. Others, such as 429, say nothing about it. */
const rangeStatuses = [400, 413, 422]

/** Replaces the errors of viem, which contain the node's URL and thus its API key. */
async function described<T>(request: Promise<T>): Promise<T> {
  try {
    return await request
  } catch (error) {
    throw chainReadError(error)
  }
}

function chainReadError(error: unknown): ChainReadError {
  if (!(error instanceof BaseError)) return new ChainReadError('the node could not be read', false)
  const found = error.walk(
    (cause) =>
      cause instanceof RpcRequestError || cause instanceof HttpRequestError || cause instanceof TimeoutError,
  )
  if (found instanceof RpcRequestError)
    return new ChainReadError(`the node returned error ${found.code}: ${redacted(found.details)}`, true)
  if (found instanceof HttpRequestError && found.status !== undefined)
    return new ChainReadError(
      `the node returned HTTP status ${found.status}`,
      rangeStatuses.includes(found.status),
    )
  if (found instanceof TimeoutError) return new ChainReadError('the node did not respond in time', true)
  return new ChainReadError(`the node could not be reached (${error.name})`, false)
}

/** A node may repeat the URL or the key of a request in its message. */
function redacted(message: string): string {
  return message
    .slice(0, 300)
    .replace(/\w+:\/\/\S+/g, '…')
    .replace(/[\w-]{16,}/g, '…')
}
