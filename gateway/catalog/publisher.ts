import { isIP } from 'node:net'
import type { AgentEntry } from '../registry/entry.ts'

/** The publisher of a gateway that has no domain name, such as one at localhost (urn-naming-guide of ARD, scenario A). */
export const placeholderDomain = 'agent.localhost'

/** The publisher of the entries: the gateway, because every entry describes an address at the gateway. */
export interface Publisher {
  /** The `<publisher>` of the identifiers. */
  domain: string
  /** The identity that the domain proves by its TLS certificate. Undefined without a domain name or https. */
  identity: string | undefined
}

export function publisherAt(gatewayUrl: string): Publisher {
  const { protocol, hostname, origin } = new URL(gatewayUrl)
  const name = hostname.replace(/\.$/, '')
  const isDomain = isIP(name.replaceAll(/[[\]]/g, '')) === 0 && /^[a-z\d-]+(?:\.[a-z\d-]+)+$/.test(name)
  if (!isDomain) return { domain: placeholderDomain, identity: undefined }
  return { domain: name, identity: protocol === 'https:' ? origin : undefined }
}

/** Verifiable facts about an entry. Its identity must be one of the domain in the identifier of the entry. */
export interface TrustManifest {
  identity: string
  identityType: 'https'
  attestations?: { type: string; uri: string; mediaType: string }[]
  provenance: { relation: 'publishedFrom' | 'derivedFrom'; sourceId: string }[]
}

/** What the gateway vouches for: the DID, keys, address and card hash of the agent (`proof` of its registry entry). */
const entryProof = { type: 'parley-entry-proof', mediaType: 'application/jose' }

/**
 * Returns the trust manifest of an agent's entries, undefined if no identity belongs to the publisher's domain. The attestation has
 * no `uri` before `withProof`, because signing all entries of a registry takes seconds.
 */
export function trustManifestOf(
  { id, did, verified, relay }: AgentEntry,
  { identity }: Publisher,
  gatewayUrl: string,
): TrustManifest | undefined {
  if (identity === undefined) return undefined
  const sourceId = verified && did !== undefined ? did : `${gatewayUrl}/registry/agents/${id}`
  return {
    identity,
    identityType: 'https',
    attestations: [{ ...entryProof, uri: '' }],
    provenance: [{ relation: relay === undefined ? 'publishedFrom' : 'derivedFrom', sourceId }],
  }
}

/** Adds the proof of the entry; null if the gateway has no identity. */
export function withProof(manifest: TrustManifest, proof: string | null): TrustManifest {
  const { attestations: _empty, ...unproven } = manifest
  if (proof === null) return unproven
  return { ...unproven, attestations: [{ ...entryProof, uri: `data:${entryProof.mediaType},${proof}` }] }
}
