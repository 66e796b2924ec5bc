import { RpcError } from '@parley/client/internal/rpc-error'
import { CommandFailed, sentenceOf } from '../terminal/faults.ts'
import { isGuarded, refusedWebhook } from '../webhooks/refused-webhook.ts'

/** Explains the errors "no such agent", "name an agent" and "webhook address refused". Returns any other error unchanged. */
export function explained(thrown: unknown, agent: string, how = 'instead of "-"'): unknown {
  if (!(thrown instanceof RpcError)) return thrown
  if (isGuarded(thrown)) return refusedWebhook(thrown)
  if (agent !== '-') {
    if (thrown.code !== -32040 || thrown.data.reason !== 'agent') return thrown
    return new CommandFailed(`There is no agent "${agent}" here; npx parley agents lists them.`)
  }
  const nobody =
    [-32601, -32004, -32040].includes(thrown.code) || (thrown.status === 404 && thrown.code === 0)
  if (!nobody) return thrown
  return new CommandFailed(
    `No agent was chosen: ${sentenceOf(thrown)} Name one ${how}; npx parley agents lists them.`,
  )
}
