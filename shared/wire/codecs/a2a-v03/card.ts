import type { AgentCard, CardSkill } from '../../model/card.ts'
import { cardScopes, interfacesAt } from '../interfaces.ts'
import { didExtension } from '../parley/card.ts'

/** The path of this version below the address of an agent. */
export const basePath = '/a2a/v0.3'
/**
 * The paths of the card of this version alone. Checkers read it at the card's URL, and clients of version 0.2 below it
 * (`agent.json`).
 */
const purePaths = ['/.well-known/agent-card.json', '/.well-known/agent.json', '/', ''].map(
  (path) => basePath + path,
)
/** The path at which clients of every version look for the card. */
export const commonCardPath = '/.well-known/agent-card.json'

export const cardPaths = [commonCardPath, ...purePaths]

/** At the common path, the card names the interfaces of every version, so that each client finds its own. */
export function cardOut(card: AgentCard, path?: string): object {
  const { sign = (unsigned: object) => unsigned } = card
  return sign(path === commonCardPath ? hybridCardOut(card) : pureCardOut(card))
}

/** Clients of A2A 1.0 read `supportedInterfaces` and ignore the fields of 0.3; clients of 0.3 do the opposite. */
export function hybridCardOut(card: AgentCard): object {
  return { ...pureCardOut(card), supportedInterfaces: interfacesAt(card.url) }
}

/** The card of A2A 0.3. Absent fields do not appear in the JSON. */
export function pureCardOut(card: AgentCard): object {
  const url = card.url.replace(/\/+$/, '') + basePath
  return {
    name: card.name,
    description: card.description,
    version: card.version,
    provider: card.author === undefined ? undefined : { organization: card.author, url: card.url },
    defaultInputModes: modesOf(card.skills.flatMap((skill) => skill.inputModes)),
    defaultOutputModes: modesOf(card.skills.flatMap((skill) => skill.outputModes)),
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
    skills: card.skills.map(skillOut),
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

/** Clients of A2A 1.0 require at least one tag. An empty list of modes means the modes of the card. */
function skillOut({ id, name, description, tags, inputModes, outputModes }: CardSkill) {
  return {
    id,
    name,
    description,
    tags: tags.length === 0 ? [id] : tags,
    inputModes: inputModes.length === 0 ? undefined : inputModes,
    outputModes: outputModes.length === 0 ? undefined : outputModes,
  }
}

/** Clients of A2A 1.0 require at least one mode. */
function modesOf(modes: readonly string[]): string[] {
  return modes.length === 0 ? ['text/plain'] : [...new Set(modes)]
}
