import type { DidDocument } from '@parley/kit/did/document'
import { gatewayIdentity, type Identity, signingKeyId } from '@parley/kit/did/identity'
import { Voucher } from '@parley/kit/did/vouch'
import type { JsonObject } from '@parley/wire/model/task'
import type { Agent } from 'undici'
import type { GatewayConfig, GatewaySecrets } from './config.ts'
import { DidDocuments } from './did/did-documents.ts'
import { type Vouch, vouchFor } from './http/entry-proof.ts'
import { documentKeys } from './registration/agent-document.ts'
import { Outside, type OutsideOptions } from './registration/guarded-client.ts'
import { Joining } from './registration/registration.ts'
import type { Registry } from './registry/registry.ts'
import { createExternalUpstream } from './routing/forwarding/external-upstream.ts'

export interface TrustOptions {
  config: GatewayConfig
  secrets: GatewaySecrets
  registry: Registry
  /** Where clients reach the gateway. */
  gatewayUrl: string
  /** Every address at which it can be reached. */
  ownAddresses: readonly string[]
  /** For tests: another resolver, certificates, shorter times. */
  outside: Partial<OutsideOptions>
}

/** Who the gateway is, whom it vouches for, and how agents from outside come in and are reached. */
export interface Trust extends AsyncDisposable {
  /** Undefined without the three settings. */
  identity: Identity | undefined
  vouch: Vouch
  joining: Joining
  resolve: (did: string) => Promise<DidDocument | undefined>
  /** The keys by which the holder of a DID may prove itself; none when it cannot be resolved. */
  keysOf: (did: string) => Promise<readonly string[]>
  /** Connections to agents from outside. */
  upstream: Agent
}

export function startTrust(options: TrustOptions): Trust {
  const { config, secrets, registry, gatewayUrl, ownAddresses, outside: more } = options
  const settings = secrets.identity
  const identity = settings && gatewayIdentity(settings)
  const voucher =
    settings &&
    identity &&
    new Voucher({ did: identity.did, seed: settings.seed, kid: signingKeyId(identity) })
  const guard = { allowed: config.registryAllowedHosts, ...more }
  const outside = new Outside(guard)
  const upstream = createExternalUpstream(guard)
  const own = (did: string) => {
    if (did === identity?.did) return identity.document as unknown as JsonObject
    // The documents of other methods are where the method says; the registry's may be old.
    if (did.startsWith('did:parley:')) return registry.find(did)?.document
    if (!did.startsWith('did:bindu:')) return undefined
    // What such a document says may be proven by nothing: it is that of an agent which an operator trusts.
    const entry = registry.find(did)
    return entry?.admitted === true ? entry.document : undefined
  }
  const documents = new DidDocuments({ own, outside: (url) => outside.getObject(url, 'The DID document') })
  const joining = new Joining({
    registry,
    outside,
    gatewayUrl,
    own: { addresses: ownAddresses, did: identity?.did },
    open: config.registryOpen,
    resolve: (did) => documents.resolve(did),
  })
  return {
    identity,
    vouch: vouchFor(voucher, gatewayUrl),
    joining,
    resolve: async (did) => (await documents.resolve(did)) as DidDocument | undefined,
    keysOf: async (did) => {
      const document = await documents.resolve(did)
      return (document && documentKeys(document, did)) ?? []
    },
    upstream,
    [Symbol.asyncDispose]: async () => {
      await upstream.destroy()
      await outside[Symbol.asyncDispose]()
    },
  }
}
