import { ParleyError } from '@parley/wire/errors'
import { modesMatch } from '@parley/wire/model/mime'

/** @throws ParleyError ContentTypeNotSupported when the agent makes nothing of what is accepted */
export function requireCommonMode(accepted: readonly string[], made: readonly string[]): void {
  if (accepted.length === 0) return
  if (accepted.some((mode) => made.some((ours) => modesMatch(mode, ours)))) return
  throw new ParleyError('ContentTypeNotSupported', {
    data: { reason: 'accepted_output_modes', supported: [...new Set(made)] },
  })
}
