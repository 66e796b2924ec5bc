import { randomUUID } from 'node:crypto'
import { Authenticator } from '@parley/kit/auth/authenticate'
import { ParleyError } from '@parley/wire/errors'
import type { Parts } from './add-routes.ts'
import { loopMark } from './http/loop-guard.ts'
import type { DispatcherFor } from './routing/forwarding/agent-target.ts'
import { callerTokenOf } from './routing/forwarding/caller-token.ts'
import { ExampleProber } from './routing/probes/example-prober.ts'
import { ExampleSender } from './routing/probes/example-sender.ts'

/** The examples of one agent, the cancellation of each task, and the time between two of them. */
const examplesAtOnce = 3
const marginMs = 10_000

/**
 * Starts to send new agents their own examples, if PROBE_EXAMPLES is set. The sender is the gateway's own client, for which
 * the policies of agents apply as for any other.
 */
export function startExampleProbes(
  {
    config: { exampleTimeoutMs: timeoutMs },
    state: { claims },
    registry,
    addresses,
    oauth,
    access,
    tokens,
    log,
  }: Pick<Parts, 'config' | 'state' | 'registry' | 'addresses' | 'oauth' | 'access' | 'tokens' | 'log'>,
  dispatcherFor: DispatcherFor,
): ExampleProber | undefined {
  if (timeoutMs === undefined) return undefined
  const via = `1.1 ${loopMark(addresses.public)}`
  const sender = new ExampleSender({ dispatcherFor, tokens, via, timeoutMs })
  const authenticator = new Authenticator(oauth.introspector, () => [addresses.public])
  const holder = randomUUID()
  const claimMs = examplesAtOnce * (timeoutMs + marginMs)
  return new ExampleProber({
    registry,
    log,
    ...(claims !== undefined && { claim: () => claims.hold('example-probes', holder, claimMs) }),
    send: async (entry, text, signal) => {
      try {
        const token = await oauth.gatewayToken()
        if (token === undefined) return undefined
        const headers = { authorization: `Bearer ${token}` }
        const caller = await authenticator.identify({ headers, method: 'POST', url: '/' })
        const agents = await access.agentsFor(caller)
        // An example does not say which skill the agent will use.
        const isLimited = agents.restrictions?.limited.has(entry.id) === true
        if (isLimited || agents.find(entry.id) === undefined) return undefined
        return await sender.send(entry, text, callerTokenOf(caller), signal)
      } catch (error) {
        // The gateway's client may not call the agent, or the OAuth server does not answer.
        if (error instanceof ParleyError) return undefined
        throw error
      }
    },
  })
}
