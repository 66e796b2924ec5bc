import { modesMatch } from '../protocol/mime.ts'
import type { OfferedSkill } from './offer.ts'
import type { NegotiationRequest } from './request.ts'

/** 1 when one skill reads every input type and makes an output type, 0.5 when it takes several skills. */
export function ioCompatibility(skills: readonly OfferedSkill[], wanted: NegotiationRequest): number {
  const inputs = wanted.inputMimeTypes ?? []
  const outputs = wanted.outputMimeTypes ?? []
  const oneDoesAll = skills.some((skill) => {
    const reads = inputs.every((type) => skill.inputModes.some((mode) => modesMatch(mode, type)))
    const makes =
      outputs.length === 0 || outputs.some((type) => skill.outputModes.some((mode) => modesMatch(mode, type)))
    return reads && makes
  })
  return oneDoesAll ? 1 : 0.5
}

/** `max(0, 1 − estimate/limit)`; 1 without a limit, 0.5 when the agent does not say. */
export function performanceScore(estimateMs: number | undefined, limitMs: number | undefined): number {
  if (limitMs === undefined) return 1
  if (estimateMs === undefined) return 0.5
  return limitMs === 0 ? 0 : Math.max(0, 1 - estimateMs / limitMs)
}

export function loadScore(queueDepth: number): number {
  return 1 / (1 + queueDepth)
}
