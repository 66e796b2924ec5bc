import { isObject } from '../../jsonrpc/envelope.ts'
import type { AgentCard } from '../../model/card.ts'
import { a2aModesOf, a2aSkillOut, cardScopes, commonCardPath, interfacesAt } from '../a2a-card.ts'
import { basePath } from './name.ts'

/** The first path has the cards of several versions, of which the request selects one. */
export const cardPaths = [commonCardPath, basePath + commonCardPath]

/** Writes the AgentCard of 1.0 without additional fields, because clients may reject them. */
export function cardOut(card: AgentCard): object {
  const { sign = unsigned } = card
  return sign({
    name: card.name,
    description: card.description,
    supportedInterfaces: interfacesAt(card.url),
    provider: card.author === undefined ? undefined : { organization: card.author, url: card.url },
    version: card.version,
    ...authorFields(card.more),
    capabilities: {
      streaming: card.streaming,
      pushNotifications: card.pushNotifications,
      extendedAgentCard: card.hasExtendedCard,
      extensions: extensionsOf(card),
    },
    ...securityOf(card),
    ...a2aModesOf(card.skills),
    skills: card.skills.map(a2aSkillOut),
  })
}

const unsigned = (card: object) => card

function securityOf({ tokenUrl }: AgentCard) {
  const scopes = { list: Object.keys(cardScopes) }
  const bearer = { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'OAuth 2.0 access token' } }
  if (tokenUrl === undefined)
    return { securitySchemes: { bearer }, securityRequirements: [{ schemes: { bearer: scopes } }] }
  const flows = { clientCredentials: { tokenUrl, scopes: cardScopes } }
  return {
    securitySchemes: { bearer, oauth2: { oauth2SecurityScheme: { flows } } },
    securityRequirements: [{ schemes: { bearer: scopes } }, { schemes: { oauth2: scopes } }],
  }
}

function extensionsOf(card: AgentCard) {
  const { did, signsArtifacts, extensions = [] } = card
  const all = [...(signsArtifacts && did !== undefined ? [didExtension(card, did)] : []), ...extensions]
  return all.length === 0 ? undefined : all
}

/** The author's additional fields that the protocol has. */
function authorFields(more: AgentCard['more'] = {}) {
  const { documentationUrl, iconUrl, provider } = more
  return {
    ...(typeof documentationUrl === 'string' && { documentationUrl }),
    ...(typeof iconUrl === 'string' && { iconUrl }),
    ...(isProvider(provider) && { provider: { organization: provider.organization, url: provider.url } }),
  }
}

function isProvider(value: unknown): value is { organization: string; url: string } {
  return isObject(value) && typeof value['organization'] === 'string' && typeof value['url'] === 'string'
}

/** Clients that understand this extension verify artifacts with the DID's key. */
function didExtension({ author, name, id }: AgentCard, did: string) {
  return {
    uri: did,
    description: 'The DID by which this agent is known',
    params: { author, agentName: name, agentId: id },
  }
}
