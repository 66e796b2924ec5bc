/** A network on which USDC and similar tokens exist. */
interface Network {
  name: string
  /** The address of a block explorer, to which the hash of a transaction is added. */
  explorer?: string
}

const networks: Record<string, Network> = {
  'eip155:1': { name: 'Ethereum', explorer: 'https://etherscan.io/tx/' },
  'eip155:10': { name: 'Optimism', explorer: 'https://optimistic.etherscan.io/tx/' },
  'eip155:137': { name: 'Polygon', explorer: 'https://polygonscan.com/tx/' },
  'eip155:1328': { name: 'Sei testnet' },
  'eip155:1329': { name: 'Sei' },
  'eip155:3338': { name: 'peaq' },
  'eip155:4689': { name: 'IoTeX', explorer: 'https://iotexscan.io/tx/' },
  'eip155:8453': { name: 'Base', explorer: 'https://basescan.org/tx/' },
  'eip155:31337': { name: 'Local test network' },
  'eip155:42161': { name: 'Arbitrum One', explorer: 'https://arbiscan.io/tx/' },
  'eip155:43113': { name: 'Avalanche Fuji (test network)', explorer: 'https://testnet.snowtrace.io/tx/' },
  'eip155:43114': { name: 'Avalanche', explorer: 'https://snowtrace.io/tx/' },
  'eip155:80002': { name: 'Polygon Amoy (test network)', explorer: 'https://amoy.polygonscan.com/tx/' },
  'eip155:84532': { name: 'Base Sepolia (test network)', explorer: 'https://sepolia.basescan.org/tx/' },
  'eip155:421614': { name: 'Arbitrum Sepolia (test network)', explorer: 'https://sepolia.arbiscan.io/tx/' },
  'eip155:11155111': {
    name: 'Ethereum Sepolia (test network)',
    explorer: 'https://sepolia.etherscan.io/tx/',
  },
  'eip155:11155420': {
    name: 'Optimism Sepolia (test network)',
    explorer: 'https://sepolia-optimism.etherscan.io/tx/',
  },
}

const networkOf = (id: string): Network | undefined =>
  Object.hasOwn(networks, id) ? networks[id] : undefined

/** Returns undefined if the network has no common name. */
export function networkName(id: string): string | undefined {
  return networkOf(id)?.name
}

/** The page of a transaction at a block explorer, or undefined if none is known. Test money is on no network. */
export function explorerUrl(
  { network, sandbox }: { network: string; sandbox: boolean },
  txHash: string,
): string | undefined {
  const explorer = networkOf(network)?.explorer
  return sandbox || explorer === undefined || !/^0x[\da-f]{64}$/i.test(txHash) ? undefined : explorer + txHash
}
