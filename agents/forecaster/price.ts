import type { PriceDefinition } from '@parley/agent'

type Settings = Record<string, string | undefined>

const usdcOfBaseSepolia = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
/** An address without a known key, used for test money only. */
const nobody = '0x000000000000000000000000000000000000dEaD'
const testNetwork = 'eip155:84532'

/**
 * The price of a forecast. Without settings, the agent charges test money.
 * @throws Error if another network is set without an address for payments
 */
export function priceOf(env: Settings): PriceDefinition {
  const said = (name: string) => env[`FORECASTER_${name}`]?.trim() || undefined
  const network = said('NETWORK') ?? testNetwork
  const isDefault = network === testNetwork
  const [payTo, asset] = [said('PAY_TO'), said('ASSET')]
  if (!isDefault && (payTo === undefined || asset === undefined))
    throw new Error('FORECASTER_PAY_TO and FORECASTER_ASSET must be set where FORECASTER_NETWORK is set.')
  const isUsdc = asset === undefined || asset.toLowerCase() === usdcOfBaseSepolia.toLowerCase()
  return {
    amount: said('PRICE') ?? '0.01',
    asset: asset ?? usdcOfBaseSepolia,
    network,
    payTo: payTo ?? nobody,
    decimals: 6,
    // The token has a different EIP-712 name on the test network.
    extra: { name: isDefault && isUsdc ? 'USDC' : 'USD Coin', version: '2' },
  }
}
