/** The x402 version 1 network names. Its official clients reject a response that contains any other name. */
const official: Readonly<Record<string, string>> = {
  abstract: 'eip155:2741',
  'abstract-testnet': 'eip155:11124',
  avalanche: 'eip155:43114',
  'avalanche-fuji': 'eip155:43113',
  base: 'eip155:8453',
  'base-sepolia': 'eip155:84532',
  educhain: 'eip155:41923',
  iotex: 'eip155:4689',
  peaq: 'eip155:3338',
  polygon: 'eip155:137',
  'polygon-amoy': 'eip155:80002',
  sei: 'eip155:1329',
  'sei-testnet': 'eip155:1328',
  'skale-base-sepolia': 'eip155:324705682',
  story: 'eip155:1514',
}

/** Additional names that are accepted in payments. */
const further: Readonly<Record<string, string>> = { ethereum: 'eip155:1', sepolia: 'eip155:11155111' }

const networks = new Map(Object.entries({ ...official, ...further }))
const names = new Map(Object.entries(official).map(([name, network]) => [network, name]))

/** Returns the CAIP-2 name, or undefined if the network is unknown. */
export function networkOfVersion1(name: string): string | undefined {
  return networks.get(name)
}

/** Returns the version 1 name, or undefined if version 1 clients do not know the network. */
export function nameOfVersion1(network: string): string | undefined {
  return names.get(network)
}
