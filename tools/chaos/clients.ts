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

/** What a client can have wrong. */
export interface Clock {
  /** Seconds that it is behind (below 0) or ahead; 0: it is right. */
  wrongBy: number
}

/** A caller of its own: a DID with its key, registered at the OAuth server, with its own tasks. */
export interface Client {
  name: string
  role: 'plain' | 'signs' | 'pays'
  clock: Clock
  /** Each at every gateway, there through the agent's own path and without naming it. */
  at: { named: AgentClient; routed: AgentClient }[]
  purse: Purse | undefined
  /** How often it was refused because its clock was wrong. */
  refusedByClock: number
  /** How often it was not, although it was. */
  takenInSpiteOfClock: number
  /** Purchases that came to nothing: paid, and to be paid back. */
  paidInVain: number
}

/** A frozen process is given up before it wakes: the request goes to another one, under its key. */
const requestTimeoutMs = 8000

export async function makeClient(cluster: Cluster, name: string, role: Client['role']): Promise<Client> {
  const identity = await agentIdentity('chaos', path.join(cluster.folder, `${name}.key.json`))
  const tokens = await registered(cluster, name, identity)
  const clock: Clock = { wrongBy: 0 }
  const purse = role === 'pays' ? await Purse.make(clock) : undefined
  const send = role === 'signs' ? signing(identity, clock) : purse?.fetch
  const clientAt = (url: string) =>
    new AgentClient({
      url,
      requestTimeoutMs,
      token: () => tokens.get().catch((error: unknown) => Promise.reject(new ConnectionError(url, error))),
      ...(send && { fetch: send }),
    })
  const at = cluster.gateways.map(({ url }) => ({
    named: clientAt(`${url}${agentPath}`),
    routed: clientAt(url),
  }))
  return { name, role, clock, at, purse, refusedByClock: 0, takenInSpiteOfClock: 0, paidInVain: 0 }
}

/** The operator's token, for the ledger: good at the agent alone, for no other is forwarded with agent:admin. */
export function operatorToken({ dataDir, url }: Cluster): ClientToken {
  const resource = `${url}${agentPath}`
  return new ClientToken({ ...operatorClient(dataDir), scope: 'agent:read agent:admin', resource })
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
  if (client === undefined) throw new Error('the OAuth server made no client')
  const tokens = new ClientToken({ tokenUrl, ...client, scope: 'agent:read agent:write' })
  await tokens.get()
  return tokens
}

/** Signs each request by the client's clock. */
function signing({ did, key }: Identity, clock: Clock): NonNullable<ClientOptions['fetch']> {
  return (url, init) => {
    const signed = signRequest({ did, key, body: init.body, timestamp: unixNow() + clock.wrongBy })
    return fetch(url, { ...init, headers: { ...init.headers, ...signed } })
  }
}
