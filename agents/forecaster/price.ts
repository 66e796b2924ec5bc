import type { PriceDefinition } from '@parley/agent'

type Settings = Record<string, string | undefined>

const usdcOfBaseSepolia = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
/** Nobody has its key: what is paid there is paid to nobody. */
const nobody = '0x000000000000000000000000000000000000dEaD'
const testNetwork = 'eip155:84532'

/**
 * What a forecast costs. Without settings it is test money, even where real money is taken.
 * @throws Error when another network is set and nobody to pay there
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
    // The token of the test network has another EIP-712 name than that of the main ones.
    extra: { name: isDefault && isUsdc ? 'USDC' : 'USD Coin', version: '2' },
  }
}
