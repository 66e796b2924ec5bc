import type { AgentCard } from '../../model/card.ts'
import { a2aModesOf, a2aSkillOut, cardScopes, commonCardPath, interfacesAt } from '../a2a-card.ts'
import { didExtension } from '../parley/card.ts'
import { basePath } from './name.ts'

/**
 * The paths of the card that is only for this version. Checkers read it at the card's URL, and clients of version 0.2 below it
 * (`agent.json`).
 */
const purePaths = [commonCardPath, '/.well-known/agent.json', '/', ''].map((path) => basePath + path)

export const cardPaths = [commonCardPath, ...purePaths]

/** At the common path, the card names the interfaces of every version, so that each client finds its own. */
export function cardOut(card: AgentCard, path?: string): object {
  const { sign = (unsigned: object) => unsigned } = card
  return sign(path === commonCardPath ? hybridCardOut(card) : pureCardOut(card))
}

/** Clients of A2A 1.0 read `supportedInterfaces` and ignore the fields of 0.3; clients of 0.3 do the opposite. */
function hybridCardOut(card: AgentCard): object {
  return { ...pureCardOut(card), supportedInterfaces: interfacesAt(card.url) }
}

/** The card of A2A 0.3. Absent fields do not appear in the JSON. */
function pureCardOut(card: AgentCard): object {
  const url = card.url.replace(/\/+$/, '') + basePath
  return {
    name: card.name,
    description: card.description,
    version: card.version,
    provider: card.author === undefined ? undefined : { organization: card.author, url: card.url },
    ...a2aModesOf(card.skills),
    ...securityOf(card),
    supportsAuthenticatedExtendedCard: card.hasExtendedCard ?? false,
    ...card.more,
    // The author cannot change what this server implements.
    protocolVersion: '0.3.0',
    url,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    capabilities: {
      streaming: card.streaming,
      pushNotifications: card.pushNotifications,
      stateTransitionHistory: true,
      extensions: [...(card.signsArtifacts ? [didExtension(card)] : []), ...(card.extensions ?? [])],
    },
    skills: card.skills.map(a2aSkillOut),
  }
}

function securityOf({ tokenUrl }: AgentCard) {
  const scopes = Object.keys(cardScopes)
  const bearer = { type: 'http', scheme: 'bearer', description: 'OAuth 2.0 access token' }
  if (tokenUrl === undefined) return { securitySchemes: { bearer }, security: [{ bearer: scopes }] }
  const flows = { clientCredentials: { tokenUrl, scopes: cardScopes } }
  return {
    securitySchemes: { bearer, oauth2: { type: 'oauth2', flows } },
    security: [{ bearer: scopes }, { oauth2: scopes }],
  }
}
