/** What people call the networks that USDC and its like are paid on. */
const names: Record<string, string> = {
  'eip155:1': 'Ethereum',
  'eip155:10': 'Optimism',
  'eip155:137': 'Polygon',
  'eip155:1328': 'Sei testnet',
  'eip155:1329': 'Sei',
  'eip155:3338': 'peaq',
  'eip155:4689': 'IoTeX',
  'eip155:8453': 'Base',
  'eip155:31337': 'Local test network',
  'eip155:42161': 'Arbitrum One',
  'eip155:43113': 'Avalanche Fuji (test network)',
  'eip155:43114': 'Avalanche',
  'eip155:80002': 'Polygon Amoy (test network)',
  'eip155:84532': 'Base Sepolia (test network)',
  'eip155:421614': 'Arbitrum Sepolia (test network)',
  'eip155:11155111': 'Ethereum Sepolia (test network)',
  'eip155:11155420': 'Optimism Sepolia (test network)',
}

/** Undefined where the CAIP-2 name is all that is known. */
export function networkName(network: string): string | undefined {
  return Object.hasOwn(names, network) ? names[network] : undefined
}
