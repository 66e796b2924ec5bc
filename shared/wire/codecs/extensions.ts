import type { CardExtension } from '../model/card.ts'

/**
 * URIs of Parley's extensions of A2A (spec/extensions.md#extensions-of-a2a). The last part is the version. They are names and
 * not addresses, because the project owns no host.
 */
export const extensionUris = {
  signedParts: 'urn:parley:a2a:signed-parts:v1',
  negotiation: 'urn:parley:a2a:negotiation:v1',
  decisionRecord: 'urn:parley:a2a:decision-record:v1',
  vouchedCard: 'urn:parley:a2a:vouched-card:v1',
} as const

/** The versions of x402 over A2A, newest first. They differ only in their URI for the flow that Parley supports. */
const x402Uris = [
  'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2',
  'https://github.com/google-a2a/a2a-x402/v0.1',
] as const

/** @param required whether every skill costs something */
export function x402Payments(required: boolean): CardExtension[] {
  const [newest, ...earlier] = x402Uris
  const description = 'Payments with x402 in the metadata of messages'
  return [
    { uri: newest, description, ...(required && { required }) },
    ...earlier.map((uri) => ({ uri, description: `${description}, by an earlier name` })),
  ]
}

/** @param did the DID whose document has the keys */
export function signedParts(did: string): CardExtension {
  return {
    uri: extensionUris.signedParts,
    description: 'Parts of artifacts are signed with the key of the DID',
    params: { did },
  }
}

export const negotiation: CardExtension = {
  uri: extensionUris.negotiation,
  description: 'Messages may state what the agent must be able to do and what it may cost',
}

export const decisionRecord: CardExtension = {
  uri: extensionUris.decisionRecord,
  description: 'The choice of an agent for a message can be read and verified afterwards',
}

/** The statements of a gateway about an agent in a card that it serves with its own addresses. */
export interface VouchedCard {
  /** The gateway's DID; null if the gateway has no identity. */
  gateway: string | null
  /** The agent's DID; null if it has no DID. */
  did: string | null
  /** Whether the agent has proven the key of its DID. */
  verified: boolean
  /** The SHA-256 of the RFC 8785 form of the card that the agent published, in hex; null if it has no such form. */
  sha256: string | null
  /** The result of verifying the signatures in that card. */
  signature: { verified: true; kid: string } | { verified: false; reason: string }
}

export function vouchedCard({ gateway, did, verified, sha256, signature }: VouchedCard): CardExtension {
  return {
    uri: extensionUris.vouchedCard,
    description: 'The gateway that serves this card in place of the agent',
    params: { gateway, did, verified, original: { sha256, signature: { ...signature } } },
  }
}
