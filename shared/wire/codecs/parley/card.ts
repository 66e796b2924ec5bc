import type { AgentCard, CardSkill, ShownPrices } from '../../model/card.ts'
import type { JsonObject } from '../../model/task.ts'
import { interfaceFieldsAt, interfacesAt } from '../a2a-card.ts'

export const cardPaths = ['/.well-known/agent.json']

const security = {
  securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'OAuth 2.0 access token' } },
  security: [{ bearer: ['agent:read', 'agent:write'] }],
}

/**
 * The card is public and, unlike other answers, uses camelCase. Absent fields do not appear in the JSON. The interfaces are
 * those of A2A, by which its clients find the addresses that they can use.
 */
export function cardOut(card: AgentCard): object {
  return {
    id: card.id,
    did: card.did,
    name: card.name,
    description: card.description,
    ...addressesAt(card.url),
    version: card.version,
    protocolVersion: '1.0.0',
    kind: 'agent',
    author: card.author,
    capabilities: {
      streaming: card.streaming,
      pushNotifications: card.pushNotifications,
      stateTransitionHistory: true,
      extensions: card.signsArtifacts ? [didExtension(card)] : [],
    },
    skills: card.skills.map(skillOut),
    defaultInputModes: unique(card.skills.flatMap((skill) => skill.inputModes)),
    defaultOutputModes: unique(card.skills.flatMap((skill) => skill.outputModes)),
    ...security,
    supportsAuthenticatedExtendedCard: card.hasExtendedCard === true ? true : undefined,
    executionCost: card.prices === undefined ? undefined : priceOut(card.prices),
    ...card.more,
  }
}

function addressesAt(url: string) {
  return { url, ...interfaceFieldsAt(url), supportedInterfaces: interfacesAt(url) }
}

/**
 * Returns an agent's card with the addresses at which a gateway forwards calls to the agent, and no others. If the card has
 * security schemes, they are the gateway's. Signatures are left out, because they do not cover this card.
 */
export function cardAt(card: JsonObject, url: string): JsonObject {
  const { additionalInterfaces, supportedInterfaces, preferredTransport, ...others } = card
  const { signatures: _signatures, securityRequirements, ...rest } = others
  const isSecured = [rest['securitySchemes'], rest['security'], securityRequirements].some(
    (field) => field !== undefined,
  )
  const listsInterfaces = [additionalInterfaces, supportedInterfaces, preferredTransport].some(
    (field) => field !== undefined,
  )
  return { ...rest, ...(isSecured && security), ...(listsInterfaces ? addressesAt(url) : { url }) }
}

/** Clients that understand this extension verify artifacts with the DID's key. */
export function didExtension({ did, author, name, id }: AgentCard) {
  return {
    uri: did,
    description: 'The DID by which this agent is known',
    required: false,
    params: { author, agent_name: name, agent_id: id },
  }
}

function skillOut({ id, name, description, tags, version, inputModes, outputModes, ...more }: CardSkill) {
  const { documentationPath, prices, agent, inputSchema } = more
  return {
    id,
    name,
    description,
    tags,
    version,
    inputModes,
    outputModes,
    documentationPath,
    inputSchema,
    executionCost: prices === undefined ? undefined : priceOut(prices),
    agent,
  }
}

/** The first payment option, in whole units, and the list of all options if there are several. */
function priceOut({ ways: prices, sandbox }: ShownPrices) {
  const ways = prices.map(({ amount, asset, network, payTo, decimals }) => ({
    amount,
    asset,
    network,
    payTo,
    decimals,
  }))
  return {
    ...ways[0],
    ...(sandbox && { sandbox: true }),
    ...(ways.length > 1 && { options: ways }),
  }
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)]
}
