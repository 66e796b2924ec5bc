import { queryFields } from '@parley/wire/codecs/parley/negotiation'
import { modesMatch } from '@parley/wire/model/mime'
import { amountOf } from './amount.ts'
import { estimateOf } from './estimate.ts'
import type { Offer, OfferedSkill } from './offer.ts'
import type { NegotiationRequest } from './request.ts'

/**
 * Describes the hard constraint that the offer breaks; undefined if it breaks none
 * (spec/negotiation.md#hard-constraints).
 */
export function brokenConstraint(offer: Offer, request: NegotiationRequest): string | undefined {
  return brokenBySkills(offer.skills, request) ?? brokenByFacts(offer, request)
}

/** Checks the constraints on skills: types and tools. */
export function brokenBySkills(
  skills: readonly OfferedSkill[],
  request: NegotiationRequest,
): string | undefined {
  if (skills.length === 0) return 'the agent has no skills'
  const unread = request.inputMimeTypes?.find(
    (type) => !skills.some(({ inputModes }) => inputModes.some((mode) => modesMatch(mode, type))),
  )
  if (unread !== undefined) return `input type ${unread} is not supported`
  const outputs = request.outputMimeTypes ?? []
  const producible = outputs.some((type) =>
    skills.some(({ outputModes }) => outputModes.some((mode) => modesMatch(mode, type))),
  )
  if (outputs.length > 0 && !producible) return `none of the output types ${outputs.join(', ')} is supported`
  return brokenByTools(skills, request)
}

function brokenByTools(
  skills: readonly OfferedSkill[],
  { requiredTools = [], forbiddenTools = [] }: NegotiationRequest,
): string | undefined {
  if (requiredTools.length === 0 && forbiddenTools.length === 0) return undefined
  const both = requiredTools.find((tool) => forbiddenTools.includes(tool))
  if (both !== undefined) return `tool ${both} is both required and forbidden`
  const tools = new Set(skills.flatMap((skill) => skill.allowedTools))
  const missing = requiredTools.find((tool) => !tools.has(tool))
  if (missing !== undefined) return `required tool ${missing} is missing`
  const forbidden = forbiddenTools.find((tool) => tools.has(tool))
  return forbidden === undefined ? undefined : `forbidden tool ${forbidden} is present`
}

/** Checks the constraints on facts that heartbeats change: price and latency. */
export function brokenByFacts(offer: Offer, request: NegotiationRequest): string | undefined {
  const { maxCostAmount, maxLatencyMs } = request
  if (maxCostAmount !== undefined && offer.price !== undefined) {
    const price = amountOf(offer.price.amount)
    const most = amountOf(maxCostAmount)
    if (price === undefined) return `its price is invalid, and ${queryFields.maxCostAmount} is set`
    if (most !== undefined && price > most)
      return `price ${offer.price.amount} is above ${queryFields.maxCostAmount} ${maxCostAmount}`
  }
  if (maxLatencyMs === undefined) return undefined
  const { latencyMs } = estimateOf(offer)
  return latencyMs !== undefined && latencyMs > 2 * maxLatencyMs
    ? `estimated ${latencyMs} ms is more than twice ${queryFields.maxLatencyMs}`
    : undefined
}
