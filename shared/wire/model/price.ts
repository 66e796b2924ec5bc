import { z } from 'zod'
import { decimalsMax, isDecimal, toAtomic } from './amount.ts'

/** One payment option, as an author writes it. */
export interface PriceDefinition {
  /** A decimal string in whole units: `"0.01"`. With `"0"`, only the handler can request payment (`requirePayment`). */
  amount: string
  /** The address of the token contract (EIP-3009, for example USDC). */
  asset: string
  /** The CAIP-2 name of the chain, for example `eip155:8453`. */
  network: string
  /** The address that receives the payment. */
  payTo: string
  /** The number of decimals of the asset. Default 6. */
  decimals?: number
  /** The `name` and `version` of the token's EIP-712 domain. Default: those of USDC, `USD Coin` and `2`. */
  extra?: { name: string; version: string }
  /**
   * Whether a person may also pay a session with a plain transfer, which the exact amount identifies. Set it only if
   * nothing else receives money at `payTo` (docs/spec/payments.md#direct-transfers). Default `false`.
   */
  transfers?: boolean | undefined
}

/** A validated price with all defaults applied. */
export interface Price
  extends Required<Omit<PriceDefinition, 'transfers'>>,
    Pick<PriceDefinition, 'transfers'> {
  /** The amount in atomic units, as a decimal string. */
  atomic: string
}

const address = z.string().regex(/^0x[\da-fA-F]{40}$/, 'must be an address: 0x and 40 hex digits')
const zero = /^0x0{40}$/
/** The maximum of a uint256. */
const mostAtomic = 2n ** 256n - 1n
/** The exact amount of a direct transfer exceeds the price by 1 to this many atomic units. */
export const transferRaiseMax = 999
const transferDecimalsMin = 6

const definition = z
  .strictObject({
    amount: z.string().refine(isDecimal, 'must be a decimal text in whole units, like "0.01"'),
    asset: address,
    network: z
      .string()
      .regex(/^eip155:[1-9]\d{0,15}$/, 'must be the CAIP-2 name of an EVM chain, like "eip155:8453"'),
    payTo: address.refine((text) => !zero.test(text), 'must not be the zero address'),
    decimals: z.int().min(0).max(decimalsMax).default(6),
    extra: z
      .strictObject({ name: z.string().min(1).max(200), version: z.string().min(1).max(50) })
      .default({ name: 'USD Coin', version: '2' }),
    transfers: z.boolean('must be true or false').optional(),
  })
  .transform((price, context): Price => {
    if (!isDecimal(price.amount)) return z.NEVER
    try {
      const atomic = toAtomic(price.amount, price.decimals)
      if (atomic > mostAtomic) throw new RangeError('exceeds the largest amount of a token (uint256)')
      const result = { ...price, atomic: atomic.toString() }
      const isZero = atomic === 0n && price.decimals >= transferDecimalsMin
      if (price.transfers === true && !isZero && !isTransferable(result)) {
        const message = `requires at least ${transferDecimalsMin} decimals and an amount of more than ${100 * transferRaiseMax} atomic units, because the last digits of the amount identify the payment`
        context.addIssue({ code: 'custom', path: ['transfers'], message })
        return z.NEVER
      }
      return result
    } catch (error) {
      context.addIssue({
        code: 'custom',
        path: ['amount'],
        message: error instanceof Error ? error.message : String(error),
      })
      return z.NEVER
    }
  })

/** Whether the last digits of the amount can identify a direct transfer: they must be worth less than 1 % of it. */
export function isTransferable({ atomic, decimals }: Pick<Price, 'atomic' | 'decimals'>): boolean {
  return decimals >= transferDecimalsMin && BigInt(atomic) > BigInt(transferRaiseMax) * 100n
}

/** One price, or several from which the caller chooses. */
export const executionCost = z
  .preprocess(
    (given) => (given === undefined || Array.isArray(given) ? given : [given]),
    z.array(definition, 'must be one price or a list of prices').min(1).max(20),
  )
  .refine(
    (all) =>
      new Set(all.map(({ network, asset }) => `${network} ${asset.toLowerCase()}`)).size === all.length,
    'must name each asset of a network once',
  )
  .optional()

/** Returns the prices with another amount. @throws RangeError when the amount has more decimals than an asset */
export function withAmount(prices: readonly Price[], amount: string): Price[] {
  return prices.map((price) => ({ ...price, amount, atomic: toAtomic(amount, price.decimals).toString() }))
}

/** Returns the prices above zero, which are paid in advance. */
export function inAdvance(prices: readonly Price[]): Price[] {
  return prices.filter(({ atomic }) => atomic !== '0')
}
