/** Chains whose money is test money anyway: the local ones, and the public test networks that USDC is on. */
const testNetworks = new Set(
  [31337, 1337, 84532, 11155111, 43113, 80002, 421614, 11155420].map((id) => `eip155:${id}`),
)

/** True where a signed transfer can never move real money. */
export function isTestNetwork(network: string): boolean {
  return testNetworks.has(network)
}
