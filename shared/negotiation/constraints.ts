import { modesMatch } from '../protocol/mime.ts'
import type { Offer } from './offer.ts'
import type { NegotiationRequest } from './request.ts'

/** The hard constraint that the offer breaks, in words; undefined when it breaks none (design gaps, "Negotiation"). */
export function brokenConstraint(
  { skills }: Offer,
  wanted: NegotiationRequest,
  estimateMs: number | undefined,
): string | undefined {
  if (skills.length === 0) return 'the agent has no skills'
  const reads = skills.flatMap((skill) => skill.inputModes)
  const unread = wanted.inputMimeTypes?.find((type) => !reads.some((mode) => modesMatch(mode, type)))
  if (unread !== undefined) return `input type ${unread} cannot be read`
  const makes = skills.flatMap((skill) => skill.outputModes)
  const outputs = wanted.outputMimeTypes ?? []
  const producible = outputs.some((type) => makes.some((mode) => modesMatch(mode, type)))
  if (outputs.length > 0 && !producible) return `none of the output types ${outputs.join(', ')} can be made`
  const tools = new Set(skills.flatMap((skill) => skill.allowedTools))
  const missing = wanted.requiredTools?.find((tool) => !tools.has(tool))
  if (missing !== undefined) return `required tool ${missing} is missing`
  const forbidden = wanted.forbiddenTools?.find((tool) => tools.has(tool))
  if (forbidden !== undefined) return `forbidden tool ${forbidden} is present`
  const { maxLatencyMs } = wanted
  if (maxLatencyMs !== undefined && estimateMs !== undefined && estimateMs > 2 * maxLatencyMs) {
    return `estimated ${estimateMs} ms is more than twice max_latency_ms`
  }
  return undefined
}
