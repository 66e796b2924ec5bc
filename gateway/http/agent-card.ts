import { cardDigest } from '@parley/kit/did/card-signature'
import type { Codec } from '@parley/wire/codecs/codec'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { negotiation, signedParts, vouchedCard, x402Payments } from '@parley/wire/codecs/extensions'
import { cardAt } from '@parley/wire/codecs/parley/card'
import { cardSkillOf, readListedSkills } from '@parley/wire/codecs/parley/skills'
import type { AgentCard } from '@parley/wire/model/card'
import { isJsonObject } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import type { AgentEntry } from '../registry/entry.ts'
import { isAlwaysPaid, isPaidAgent } from '../routing/placement/agent-prices.ts'
import { agentUrl } from './entry-out.ts'

/** The statements about a gateway in the cards of agents that it serves. */
export interface CardServer {
  gatewayUrl: string
  /** Undefined if the gateway has no identity (SERVICE_GATEWAY_*). */
  did: string | undefined
  /** The token endpoint of the gateway's OAuth server. Undefined if the server is external. */
  tokenUrl: string | undefined
  /** Signs a card with the gateway's key. Undefined without an identity. */
  signCard: AgentCard['sign']
}

/** The registry replaces the card object with each change. */
const digests = new WeakMap<object, string | null>()

/**
 * Returns the card of an agent for clients of the gateway. It is made of the fields of the registry's copy that are known and
 * checked. All addresses are the gateway's, so that clients send their tokens to no other server, and the gateway signs it.
 */
export function agentCard(entry: AgentEntry, { gatewayUrl, did, tokenUrl, signCard }: CardServer): AgentCard {
  const { card, skills, verified } = entry
  const capabilities = isJsonObject(card['capabilities']) ? card['capabilities'] : {}
  // The relay offers streams and webhooks for agents that do not.
  const offers = (name: string) => entry.relay !== undefined || capabilities[name] === true
  const url = agentUrl(entry.slug, gatewayUrl)
  const proven = verified ? entry.did : undefined
  const vouched = vouchedCard({
    gateway: did ?? null,
    did: entry.did ?? null,
    verified,
    sha256: digestOf(entry),
    signature: entry.cardSignature ?? {
      verified: false,
      reason: 'signatures' in card ? 'unchecked' : 'unsigned',
    },
  })
  return {
    id: entry.id,
    did: proven,
    name: entry.name,
    description: entry.description,
    url,
    version: lineIn(card, 'version') ?? '0',
    author: lineIn(card, 'author'),
    streaming: offers('streaming'),
    pushNotifications: offers('pushNotifications'),
    signsArtifacts: proven !== undefined,
    hasExtendedCard:
      entry.relay === undefined &&
      (card['supportsAuthenticatedExtendedCard'] === true || capabilities['extendedAgentCard'] === true),
    skills: skills.map(cardSkillOf),
    extensions: [
      ...(proven === undefined ? [] : [signedParts(proven)]),
      negotiation,
      ...(isPaidAgent(entry) ? x402Payments(isAlwaysPaid(entry)) : []),
      vouched,
    ],
    tokenUrl,
    sign: signCard,
    more: linksIn(card, url),
  }
}

/**
 * Returns the extended card that an agent sent, with the gateway's addresses and, in the dialects of A2A, its signature and the
 * known fields only.
 */
export function extendedCard(entry: AgentEntry, json: JsonObject, codec: Codec, server: CardServer): unknown {
  if (codec === defaultDialect) return cardAt(json, agentUrl(entry.slug, server.gatewayUrl))
  const { cardSignature: _signature, ...known } = entry
  const shown = {
    ...known,
    card: json,
    name: lineIn(json, 'name') ?? entry.name,
    description: typeof json['description'] === 'string' ? json['description'] : entry.description,
    skills: readListedSkills(json['skills']),
  }
  const result = { ...agentCard(shown, server), hasExtendedCard: true }
  return codec.writeResult('getExtendedCard', result).json
}

function digestOf({ card }: AgentEntry): string | null {
  const known = digests.get(card)
  if (known !== undefined) return known
  const digest = cardDigest(card) ?? null
  digests.set(card, digest)
  return digest
}

/** Links for people. Clients send nothing there. */
function linksIn(card: AgentEntry['card'], address: string): AgentCard['more'] {
  const provider = isJsonObject(card['provider']) ? card['provider'] : {}
  const organization = lineIn(provider, 'organization')
  const links = { documentationUrl: urlIn(card, 'documentationUrl'), iconUrl: urlIn(card, 'iconUrl') }
  return {
    ...links,
    ...(organization !== undefined && { provider: { organization, url: urlIn(provider, 'url') ?? address } }),
  }
}

function lineIn(object: AgentEntry['card'], name: string): string | undefined {
  const value = object[name]
  return typeof value === 'string' && value.length > 0 && value.length <= 512 ? value : undefined
}

function urlIn(object: AgentEntry['card'], name: string): string | undefined {
  const value = lineIn(object, name)
  return value !== undefined && /^https?:\/\//.test(value) && URL.canParse(value) ? value : undefined
}
