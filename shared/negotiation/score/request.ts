import { parseParams } from '@parley/wire/codecs/parley/params'
import { wireObject } from '@parley/wire/codecs/parley/spelling'
import { z } from 'zod'
import { amountPattern, decimalText } from './amount.ts'
import { defaultWeights, type Weights } from './weights.ts'

const share = z.number().min(0).max(1)
const names = z.array(z.string().max(256)).max(100).optional()
export const amount = z
  .string()
  .max(61)
  .regex(
    amountPattern,
    'must be a decimal number such as 0.05: no sign, exponent or currency, 30 digits a side',
  )

/** Clients of the reference implementation send the budget as a JSON number. */
const budget = z.preprocess((given) => (typeof given === 'number' ? decimalText(given) : given), amount)

/** The five weights. A missing weight is 0 (spec/negotiation.md#weights). */
const weights = wireObject({
  skillMatch: share.default(0),
  ioCompatibility: share.default(0),
  performance: share.default(0),
  load: share.default(0),
  cost: share.default(0),
})

/** The body of `POST /agent/negotiation`. */
export const negotiationRequest = wireObject({
  taskSummary: z.string().min(1).max(100_000),
  taskDetails: z.string().max(1_000_000).optional(),
  inputMimeTypes: names,
  outputMimeTypes: names,
  maxLatencyMs: z.int().min(0).optional(),
  maxCostAmount: budget.optional(),
  requiredTools: names,
  forbiddenTools: names,
  minScore: share.optional(),
  weights: weights.optional(),
})

export interface NegotiationRequest extends Omit<z.output<typeof negotiationRequest>, 'weights'> {
  weights: Weights
  /** Set if the request had no `weights`. The reasons then report the defaults. */
  weightsAreDefault?: true
}

/** @throws ParleyError InvalidParams */
export function parseNegotiation(body: unknown): NegotiationRequest {
  const { weights: given, ...wanted } = parseParams(negotiationRequest, body)
  if (given !== undefined) return { ...wanted, weights: given }
  return { ...wanted, weights: defaultWeights, weightsAreDefault: true }
}
