/** Chains whose money has no value: local ones, and the public test networks of USDC. */
const testNetworks = new Set(
  [31337, 1337, 84532, 11155111, 43113, 80002, 421614, 11155420].map((id) => `eip155:${id}`),
)

/** True when a signed transfer on the network cannot move real money. */
export function isTestNetwork(network: string): boolean {
  return testNetworks.has(network)
}
