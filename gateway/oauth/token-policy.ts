import { actingAgents } from '@parley/kit/auth/caller'
import { actorsOf, type Introspection } from '@parley/kit/auth/introspection'
import { errors } from 'oidc-provider'

/** The parties of a token, to which the policies of agents apply. */
export interface TokenParties {
  subject: string
  /** The agent that acts for the subject. */
  delegate?: string
  scopes: ReadonlySet<string>
}

/** Decides for which agents clients get tokens, and where these are active (spec/policy.md#enforcement). */
export interface TokenPolicy {
  /** Whether a token for this server may be issued. */
  mayGetToken(resource: string, parties: TokenParties): Promise<boolean>
  /** Whether a token is active at the agent with this client id. */
  mayUseAt(agentClientId: string, parties: TokenParties): Promise<boolean>
  /** Returns the agent that a resource of the gateway names, for the approval page. */
  agentAt?(resource: string): { name: string } | undefined
}

/** The tag of introspection responses that depend on policies, which is all of them. */
export const policyTag = 'policy'

export function partiesOf(clientId: string, actors: readonly string[], scope = ''): TokenParties {
  const [delegate] = actingAgents({ actors })
  return { subject: clientId, ...(delegate !== undefined && { delegate }), scopes: new Set(scope.split(' ')) }
}

export function partiesIn({ client_id, sub, act, scope }: Introspection): TokenParties {
  return partiesOf(client_id ?? sub ?? '', act === undefined ? [] : actorsOf(act), scope)
}

/** The error names no agent, so that a hidden agent and a missing one look the same. */
export const resourceRefused =
  'resource is not a server for which this client can get a token: check the address, or ask the operator of the gateway'

/** @throws InvalidTarget */
export async function requireResource(
  policy: TokenPolicy | undefined,
  resource: string,
  parties: TokenParties,
): Promise<void> {
  if (policy !== undefined && !(await policy.mayGetToken(resource, parties)))
    throw new errors.InvalidTarget(resourceRefused)
}
