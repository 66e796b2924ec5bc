import { erc20Abi, type Log, type PublicClient, parseEventLogs } from 'viem'
import { authorizationUsed } from './chain-transfer.ts'
import type { ChainTransfer, TransferLog, TransferQuery, TransferSource } from './facilitator.ts'
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

  async latestBlock(): Promise<number> {
    return Number(await this.#client.getBlockNumber({ cacheTime: 0 }))
  }

  async confirmedBlock(): Promise<{ number: number; minedAt: number } | undefined> {
    const number = (await this.#client.getBlockNumber({ cacheTime: 0 })) - this.#confirmations + 1n
    if (number < 0n) return undefined
    const { timestamp } = await this.#client.getBlock({ blockNumber: number })
    return { number: Number(number), minedAt: Number(timestamp) * 1000 }
  }

  async logsIn({ assets, payTos, fromBlock, toBlock }: TransferQuery): Promise<TransferLog[]> {
    const logs = await this.#client.getLogs({
      address: assets.map(hexOf),
      event: transferEvent,
      args: { to: payTos.map(hexOf) },
      fromBlock: BigInt(fromBlock),
      toBlock: BigInt(toBlock),
      strict: true,
    })
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
    const [receipt, block] = await Promise.all([
      this.#client.getTransactionReceipt({ hash: hexOf(log.txHash) }),
      this.#client.getBlock({ blockHash: hexOf(log.blockHash) }),
    ])
    const position = receipt.logs.findIndex(({ logIndex }) => logIndex === log.logIndex)
    const isSame = receipt.status === 'success' && receipt.blockHash === log.blockHash && position >= 0
    if (!isSame || !isTransfer(receipt.logs[position], log))
      throw new Error(`the chain was reorganized while transaction ${log.txHash} was read`)
    return {
      ...log,
      key: `transfer ${this.network} ${log.txHash} ${position}`.toLowerCase(),
      minedAt: Number(block.timestamp) * 1000,
      isAuthorized: isAuthorized(receipt.logs, log),
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

/** Whether the payer used a signed authorization of the token in the transaction. */
function isAuthorized(logs: readonly Log[], { asset, payer }: TransferLog): boolean {
  const ofAsset = logs.filter(({ address }) => address.toLowerCase() === asset.toLowerCase())
  const uses = parseEventLogs({ abi: [authorizationUsed], logs: ofAsset })
  return uses.some(({ args }) => args.authorizer.toLowerCase() === payer.toLowerCase())
}
