import { ExposedSecretFile, readSecretFile } from '@parley/kit/process/secret-file'
import { ConfigError } from '@parley/kit/process/settings'
import type { Price } from '@parley/wire/model/price'
import { ChainFacilitator } from './chain-facilitator.ts'
import { chainIdOf, hexOf } from './typed-data.ts'

const rpcTimeoutMs = 10_000

/**
 * Opens the chain at PAYMENT_RPC_URL, and checks that the prices match its chain id and the decimals of each
 * asset.
 * @throws ConfigError
 */
export async function openChain(
  options: {
    rpcUrl: string
    signerKeyFile: string | undefined
    agentId: string
    confirmations?: number | undefined
  },
  prices: readonly Price[],
): Promise<ChainFacilitator> {
  const { createPublicClient, http, erc20Abi } = await import('viem')
  const transport = http(options.rpcUrl, { timeout: rpcTimeoutMs, retryCount: 1 })
  const client = createPublicClient({ transport })
  const chainId = await client.getChainId().catch(() => {
    throw new ConfigError([
      'PAYMENT_RPC_URL cannot be reached. It is needed to check the prices against the chain.',
    ])
  })
  for (const { network, asset, decimals } of prices) {
    if (chainIdOf(network) !== chainId)
      throw new ConfigError([`PAYMENT_RPC_URL is a node of eip155:${chainId}, but a price is on ${network}.`])
    const decimalsOnChain = await client
      .readContract({ address: hexOf(asset), abi: erc20Abi, functionName: 'decimals' })
      .catch(() => {
        throw new ConfigError([
          `executionCost contains the asset ${asset}, which is not a token on ${network}.`,
        ])
      })
    if (decimalsOnChain !== decimals)
      throw new ConfigError([
        `executionCost specifies ${decimals} decimals for ${asset}, but the token has ${decimalsOnChain}.`,
      ])
  }
  const privateKey = options.signerKeyFile === undefined ? undefined : await signerKey(options.signerKeyFile)
  const { rpcUrl, agentId, confirmations } = options
  return ChainFacilitator.open({
    rpcUrl,
    chainId,
    privateKey,
    agentId,
    timeoutMs: rpcTimeoutMs,
    confirmations,
  })
}

/** @throws ConfigError, which never contains the key */
async function signerKey(file: string): Promise<`0x${string}`> {
  const text = await readSecretFile(file).catch((error: unknown) => {
    const reason = error instanceof ExposedSecretFile ? error.message : `${file} cannot be read.`
    throw new ConfigError([`PAYMENT_SIGNER_KEY_FILE: ${reason}`])
  })
  const match = /^(?:0x)?([\da-f]{64})$/i.exec(text.trim())
  if (match === null)
    throw new ConfigError([`PAYMENT_SIGNER_KEY_FILE must hold a private key, 64 hex digits: ${file}.`])
  return `0x${match[1]}`
}
