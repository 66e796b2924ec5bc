/** Chains that carry money without value: local chains and the public USDC test networks. */
const testNetworks = new Set(
  [31337, 1337, 84532, 11155111, 43113, 80002, 421614, 11155420].map((id) => `eip155:${id}`),
)

/** Returns whether a signed transfer on the network cannot move real money. */
export function isTestNetwork(network: string): boolean {
  return testNetworks.has(network)
}
