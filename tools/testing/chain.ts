import { fileURLToPath } from 'node:url'
import type { SignedTransfer } from '@parley/engine/store/payment-store'
import type { PriceDefinition } from '@parley/wire/model/price'
import { createHardhatRuntimeEnvironment } from 'hardhat/hre'
import { type Address, createWalletClient, defineChain, http, parseAbi, publicActions, toHex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { compiledToken } from './compiled-token.ts'

type Hex = `0x${string}`

const chainId = 31_337
const abi = parseAbi([
  'function mint(address to, uint256 value)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

/** A token transfer. */
export interface Moved {
  from: string
  to: string
  atomic: bigint
  txHash: string
}

/**
 * A local chain with an EIP-3009 token that has six decimals, with JSON-RPC at `url`. It is a Hardhat network in this
 * process. By default, it mines a block per transaction.
 */
export class TestChain implements AsyncDisposable {
  readonly network = `eip155:${chainId}`
  readonly url: string
  readonly token: Address
  /** Key of an account with ether for gas. */
  readonly signerKey: Hex
  readonly #client: ReturnType<typeof clientOf>
  readonly #open: AsyncDisposableStack

  private constructor(parts: {
    url: string
    token: Address
    signerKey: Hex
    client: ReturnType<typeof clientOf>
    open: AsyncDisposableStack
  }) {
    this.url = parts.url
    this.token = parts.token
    this.signerKey = parts.signerKey
    this.#client = parts.client
    this.#open = parts.open
  }

  static async start(): Promise<TestChain> {
    await using open = new AsyncDisposableStack()
    const signerKey = generatePrivateKey()
    const url = await startNode(signerKey, open)
    const client = clientOf(url, signerKey)
    const hash = await client.deployContract({ abi, bytecode: compiledToken() })
    const { contractAddress } = await client.waitForTransactionReceipt({ hash })
    if (!contractAddress) throw new Error('the token was not deployed')
    return new TestChain({ url, token: contractAddress, signerKey, client, open: open.move() })
  }

  /** A price in the token. */
  price(amount: string, payTo: string): PriceDefinition {
    const extra = { name: 'Test Dollar', version: '1' }
    return { amount, asset: this.token, network: this.network, payTo, decimals: 6, extra }
  }

  /** Creates an account with this many atomic units of the token. */
  async payer(atomic = 1_000_000n): Promise<PrivateKeyAccount> {
    const account = privateKeyToAccount(generatePrivateKey())
    await this.mint(account.address, atomic)
    return account
  }

  async mint(to: Address, atomic: bigint): Promise<void> {
    const hash = await this.#client.writeContract({
      address: this.token,
      abi,
      functionName: 'mint',
      args: [to, atomic],
    })
    await this.#client.waitForTransactionReceipt({ hash })
  }

  /** Makes a plain transfer. Resolves with its transaction when it is in a block. */
  async transfer(to: string, atomic: bigint): Promise<string> {
    await this.mint(privateKeyToAccount(this.signerKey).address, atomic)
    const functionName = 'transfer'
    const args = [to as Address, atomic] as const
    const hash = await this.#client.writeContract({ address: this.token, abi, functionName, args })
    await this.#client.waitForTransactionReceipt({ hash })
    return hash
  }

  /** Makes a signed transfer without the agent. Resolves with its transaction when it is in a block. */
  async settle({ authorization, signature }: SignedTransfer): Promise<string> {
    const { from, to, value, validAfter, validBefore, nonce } = authorization
    const hash = await this.#client.writeContract({
      address: this.token,
      abi,
      functionName: 'transferWithAuthorization',
      args: [
        from as Address,
        to as Address,
        BigInt(value),
        BigInt(validAfter),
        BigInt(validBefore),
        nonce as Hex,
        signature as Hex,
      ],
    })
    await this.#client.waitForTransactionReceipt({ hash })
    return hash
  }

  balanceOf(owner: string): Promise<bigint> {
    return this.#client.readContract({
      address: this.token,
      abi,
      functionName: 'balanceOf',
      args: [owner as Address],
    })
  }

  /** All transfers to the address, oldest first. */
  async paidTo(address: string): Promise<Moved[]> {
    const logs = await this.#client.getContractEvents({
      address: this.token,
      abi,
      eventName: 'Transfer',
      args: { to: address as Address },
      fromBlock: 0n,
      strict: true,
    })
    return logs.map(({ args, transactionHash }) => ({
      from: args.from,
      to: args.to,
      atomic: args.value,
      txHash: transactionHash,
    }))
  }

  /** Sets whether each transaction creates a block. Otherwise, transactions wait for `mine`. */
  async mineByItself(on: boolean): Promise<void> {
    await this.#ask('evm_setAutomine', [on])
  }

  async blockNumber(): Promise<number> {
    return Number(await this.#client.getBlockNumber({ cacheTime: 0 }))
  }

  async mine(blocks = 1): Promise<void> {
    await this.#ask('hardhat_mine', [toHex(blocks)])
  }

  async #ask(method: string, params: unknown[]): Promise<void> {
    await this.#client.request({ method, params } as never)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }
}

async function startNode(signerKey: Hex, open: AsyncDisposableStack): Promise<string> {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const accounts = [{ privateKey: signerKey, balance: toHex(10n ** 22n) }]
  const networks = { local: { type: 'edr-simulated' as const, chainId, accounts } }
  const hre = await createHardhatRuntimeEnvironment({ networks }, {}, root)
  const server = await hre.network.createServer('local', '127.0.0.1', 0)
  const { port } = await server.listen()
  open.defer(() => server.close())
  return `http://127.0.0.1:${port}`
}

function clientOf(url: string, signerKey: Hex) {
  const chain = defineChain({
    id: chainId,
    name: 'local',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  })
  const account = privateKeyToAccount(signerKey)
  const pollingInterval = 50
  return createWalletClient({ account, chain, transport: http(url), pollingInterval }).extend(publicActions)
}
