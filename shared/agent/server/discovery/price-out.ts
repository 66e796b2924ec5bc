import type { Price } from '@parley/wire/model/price'

/** A price as the card shows it: the first way to pay, in whole units, and all of them where there are several. */
export function priceOut(prices: readonly Price[], sandbox: boolean) {
  const ways = prices.map(({ amount, asset, network, payTo, decimals }) => ({
    amount,
    asset,
    network,
    payTo,
    decimals,
  }))
  return {
    ...ways[0],
    ...(sandbox && { sandbox: true }),
    ...(ways.length > 1 && { options: ways }),
  }
}
