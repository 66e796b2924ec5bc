import type { RpcError } from '@parley/client/internal/rpc-error'
import { CommandFailed, sentenceOf } from '../terminal/faults.ts'

/** Whether the agent refused the address of a webhook. */
export function isGuarded({ code, data }: RpcError): boolean {
  return code === -32602 && (data['reason'] === 'not_public' || data['reason'] === 'local_name')
}

/** Explains the refusal and how to allow the address. In trials, the receiver is usually on the same machine. */
export function refusedWebhook(thrown: RpcError): CommandFailed {
  const allow =
    'An address that is not public must be allowed where the agent runs (for this machine: WEBHOOK_ALLOWED_HOSTS=127.0.0.1).'
  return new CommandFailed(`The agent refused the webhook: ${sentenceOf(thrown)} ${allow}`)
}
