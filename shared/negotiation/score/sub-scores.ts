import { modesMatch } from '@parley/wire/model/mime'
import { amountOf, shareOf } from './amount.ts'
import type { Facts, OfferedSkill } from './offer.ts'
import type { NegotiationRequest } from './request.ts'

/**
 * Returns 1 if one skill accepts all input types and produces an output type, or 0.5 if several skills are needed.
 * @param payloadTypes the types of data that is pasted into the text, which count like input types
 */
export function ioCompatibility(
  skills: readonly OfferedSkill[],
  request: NegotiationRequest,
  payloadTypes: readonly string[] = [],
): number {
  const inputs = [...(request.inputMimeTypes ?? []), ...payloadTypes]
  const outputs = request.outputMimeTypes ?? []
  if (inputs.length === 0 && outputs.length === 0) return 1
  const oneDoesAll = skills.some((skill) => {
    const reads = inputs.every((type) => skill.inputModes.some((mode) => modesMatch(mode, type)))
    const makes =
      outputs.length === 0 || outputs.some((type) => skill.outputModes.some((mode) => modesMatch(mode, type)))
    return reads && makes
  })
  return oneDoesAll ? 1 : 0.5
}

/**
 * Returns `max(0, 1 − estimate/limit)`, or 1 without a limit, or 0.5 without an estimate, multiplied by the fraction
 * of successful tasks (docs/decisions/0020-load-and-performance.md).
 */
export function performanceScore(
  estimateMs: number | undefined,
  limitMs: number | undefined,
  successShare = 1,
): number {
  if (limitMs === undefined) return successShare
  if (estimateMs === undefined) return 0.5 * successShare
  return limitMs === 0 ? 0 : Math.max(0, 1 - estimateMs / limitMs) * successShare
}

/**
 * Returns `1 ÷ (1 + waiting tasks)`. A running task counts as a tenth, which decides between agents without waiting
 * tasks (record 20).
 */
export function loadScore({ queueDepth, activeTasks = 0 }: Facts): number {
  return 1 / (1 + Math.max(0, queueDepth) + Math.max(0, activeTasks) / 10)
}

/** Returns 1 for a free agent, 0.5 without a budget, and otherwise `1 − 0.5 · price/budget`. */
export function costScore(price: string | undefined, budget: string | undefined): number {
  if (price === undefined) return 1
  const asked = amountOf(price)
  if (asked === 0n) return 1
  const most = budget === undefined ? undefined : amountOf(budget)
  if (asked === undefined || most === undefined) return 0.5
  return most < asked ? 0 : 1 - 0.5 * shareOf(asked, most)
}
