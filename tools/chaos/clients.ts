import path from 'node:path'
import { ownClient } from '@parley/agent/internal/server/registration/own-client'
import { AgentClient, ConnectionError } from '@parley/client/internal/client'
import type { ClientOptions } from '@parley/client/internal/transport'
import type { Cluster } from '@parley/e2e/harness/cluster'
import { operatorClient } from '@parley/e2e/harness/operator'
import { ClientToken } from '@parley/kit/auth/client-token'
import { discover } from '@parley/kit/auth/discovery'
import { agentIdentity, type Identity } from '@parley/kit/did/identity'
import { signRequest, unixNow } from '@parley/kit/did/signature'
import { agentPath } from './cluster.ts'
import { Purse } from './purse.ts'

/** A client's clock. */
export interface Clock {
  /** Number of seconds by which the clock is ahead, or behind if negative. */
  wrongBy: number
}

/** A caller with its own DID and key, OAuth client and tasks. */
export interface Client {
  name: string
  role: 'plain' | 'signs' | 'pays' | 'a2a'
  clock: Clock
  /** Two clients per gateway, one for the agent's path and one for routed messages. */
  at: { named: AgentClient; routed: AgentClient }[]
  /** Gets a token. Throws ConnectionError if no gateway issues one. */
  token: (url: string) => Promise<string>
  purse: Purse | undefined
  /** Number of requests refused because of the wrong clock. */
  refusedByClock: number
  /** Number of requests accepted in spite of the wrong clock. */
  acceptedDespiteClock: number
  /** Number of payments without a task, which are listed for refund. */
  paidWithoutTask: number
}

/** Shorter than a freeze, so that the request is repeated at another process under the same key. */
export const requestTimeoutMs = 8000

export async function makeClient(cluster: Cluster, name: string, role: Client['role']): Promise<Client> {
  const identity = await agentIdentity('chaos', path.join(cluster.folder, `${name}.key.json`))
  const tokens = await registered(cluster, name, identity)
  const clock: Clock = { wrongBy: 0 }
  const purse = role === 'pays' ? await Purse.make(clock) : undefined
  const send = role === 'signs' ? signing(identity, clock) : purse?.fetch
  const token = (url: string) =>
    tokens.get().catch((error: unknown) => Promise.reject(new ConnectionError(url, error)))
  const clientAt = (url: string) =>
    new AgentClient({ url, requestTimeoutMs, token: () => token(url), ...(send && { fetch: send }) })
  const at = cluster.gateways.map(({ url }) => ({
    named: clientAt(`${url}${agentPath}`),
    routed: clientAt(url),
  }))
  return {
    name,
    role,
    clock,
    at,
    token,
    purse,
    refusedByClock: 0,
    acceptedDespiteClock: 0,
    paidWithoutTask: 0,
  }
}

/** The operator's token, with which the gateway gives access to the ledger. */
export function operatorToken({ dataDir }: Cluster): ClientToken {
  return new ClientToken({ ...operatorClient(dataDir), scope: 'agent:read agent:admin' })
}

async function registered(cluster: Cluster, name: string, identity: Identity): Promise<ClientToken> {
  const issuer = `${cluster.url}/oauth2`
  const { registration_endpoint: endpoint = '', token_endpoint: tokenUrl = '' } = await discover(issuer)
  const client = await ownClient({
    issuer,
    endpoint: () => Promise.resolve(endpoint),
    initialToken: cluster.initialToken,
    did: identity.did,
    key: identity.key,
    keyHistory: identity.document.keyHistory,
    name,
    file: path.join(cluster.folder, `${name}.client.json`),
  })
  if (client === undefined) throw new Error('the OAuth server registered no client')
  const tokens = new ClientToken({ tokenUrl, ...client, scope: 'agent:read agent:write' })
  await tokens.get()
  return tokens
}

/** Signs each request with the client's clock. */
function signing({ did, key }: Identity, clock: Clock): NonNullable<ClientOptions['fetch']> {
  return (url, init) => {
    const signed = signRequest({ did, key, body: init.body, timestamp: unixNow() + clock.wrongBy })
    return fetch(url, { ...init, headers: { ...init.headers, ...signed } })
  }
}
