import { cardSigner } from '@parley/kit/did/card-signature'
import { gatewayIdentity, type Identity, signingKeyId } from '@parley/kit/did/identity'
import { Voucher } from '@parley/kit/did/vouch'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import type { Agent } from 'undici'
import type { GatewayConfig, GatewaySecrets } from './config.ts'
import { DidDocuments } from './did/did-documents.ts'
import { entryProofs, type ProofOf } from './http/entry-proof.ts'
import type { FetchDocument } from './oauth/clients/metadata-documents.ts'
import type { AgentCredentials } from './registration/agent-credentials.ts'
import { documentKeys } from './registration/agent-document.ts'
import { GuardedClient, type GuardedClientOptions } from './registration/guarded-client.ts'
import { AgentRegistration } from './registration/registration.ts'
import type { AgentDirectory } from './registry/agent-policies.ts'
import type { Registry } from './registry/registry.ts'
import { createExternalUpstream } from './routing/forwarding/external-upstream.ts'
import { upstreamOptions } from './routing/forwarding/upstream.ts'

/** The size of a client's metadata document, which has a few hundred bytes. */
const clientDocumentMaxBytes = 16 * 1024

export interface TrustOptions {
  config: GatewayConfig
  secrets: GatewaySecrets
  registry: Registry
  /** The public URL of the gateway. */
  gatewayUrl: string
  /** All URLs of the gateway. */
  ownAddresses: readonly string[]
  /** A custom resolver, certificates and time limits for tests. */
  guardedClient: Partial<GuardedClientOptions> | undefined
  /** The credentials of foreign agents. */
  credentials: Pick<AgentCredentials, 'of'>
}

/** The gateway's identity and proofs, DID resolution and the registration of external agents. */
export interface Trust extends AsyncDisposable {
  /** Undefined if the SERVICE_GATEWAY_* settings are missing. */
  identity: Identity | undefined
  proofOf: ProofOf
  /** Signs a card with the gateway's key. Undefined without an identity. */
  signCard: ((card: object) => object) | undefined
  registration: AgentRegistration
  /** Resolves a DID. Documents of the registry are found only for the given agents, by default for all. */
  resolve: (did: string, agents?: AgentDirectory) => Promise<JsonObject | undefined>
  /** Returns the Ed25519 keys that authenticate a DID, or none if the DID cannot be resolved. */
  keysOf: (did: string) => Promise<readonly string[]>
  /** Reads a document from an address that a client of the OAuth server chose. */
  fetchDocument: FetchDocument
  /** The connections to external agents. */
  upstream: Agent
}

export function startTrust(options: TrustOptions): Trust {
  const { config, secrets, registry, gatewayUrl, ownAddresses, guardedClient: guardOptions } = options
  const settings = secrets.identity
  const identity = settings && gatewayIdentity(settings)
  const voucher =
    settings &&
    identity &&
    new Voucher({ did: identity.did, seed: settings.seed, kid: signingKeyId(identity) })
  const guard = { allowed: config.registryAllowedHosts, ...guardOptions }
  const client = new GuardedClient(guard)
  const upstream = createExternalUpstream({ ...guard, ...upstreamOptions(config) })
  const gatewayDocument = identity && jsonObjectOf(JSON.stringify(identity.document))
  const ownIn = (agents: AgentDirectory) => (did: string) => {
    if (did === identity?.did) return gatewayDocument
    // Documents of other methods are resolved by their method, because the registry's copy may be outdated.
    if (did.startsWith('did:parley:')) return agents.find(did)?.document
    if (!did.startsWith('did:bindu:')) return undefined
    // A did:bindu document may be unproven, so it is used only if its agent is admitted.
    const entry = agents.find(did)
    return entry?.admitted === true ? entry.document : undefined
  }
  const documents = new DidDocuments({
    own: ownIn(registry),
    readExternal: (url) => client.getObject(url, 'The DID document'),
  })
  const registration = new AgentRegistration({
    registry,
    client,
    gatewayUrl,
    own: { addresses: ownAddresses, did: identity?.did },
    open: config.registryOpen,
    resolve: (did) => documents.resolve(did),
    credentialOf: (entry) => options.credentials.of(entry),
  })
  return {
    identity,
    proofOf: entryProofs(voucher, gatewayUrl),
    signCard: identity && cardSigner(identity),
    registration,
    resolve: (did, agents) => documents.resolve(did, agents && ownIn(agents)),
    keysOf: async (did) => {
      const document = await documents.resolve(did)
      return (document && documentKeys(document, did)) ?? []
    },
    fetchDocument: (url, signal) => client.getDocument(url, { maxBytes: clientDocumentMaxBytes, signal }),
    upstream,
    [Symbol.asyncDispose]: async () => {
      await upstream.destroy()
      await client[Symbol.asyncDispose]()
    },
  }
}
