import { agentId } from '@parley/kit/did/did'
import { negotiation, signedParts, x402Payments } from '@parley/wire/codecs/extensions'
import { ParleyError } from '@parley/wire/errors'
import type { AgentCard, CardExtension, CardSkill, ShownPrices } from '@parley/wire/model/card'
import type { Price } from '@parley/wire/model/price'
import type { Agent, Skill } from '../../author/agent.ts'
import { isAlwaysPaid, isPaid, publicPrice } from '../../author/price-of.ts'
import { inputSchemaOf } from './input-schema.ts'
import type { Run } from './method.ts'

/** Converts prices for display; in the sandbox, it converts them to test money. */
export interface PriceDisplay {
  sandbox: boolean
  acceptedTerms(prices: readonly Price[]): Price[]
}

/** Builds an agent's public card (spec/discovery.md#agent-card). */
export function agentCard(
  agent: Agent,
  at: Pick<AgentCard, 'url' | 'sign'> & { did: string; prices?: PriceDisplay | undefined },
): AgentCard {
  return {
    id: agentId(at.did),
    did: at.did,
    name: agent.name,
    description: agent.description,
    url: at.url,
    version: agent.version,
    author: agent.author,
    ...agent.capabilities,
    signsArtifacts: true,
    hasExtendedCard: agent.extendedCard !== undefined,
    skills: agent.skills.map((skill) => cardSkill(skill, at.prices)),
    prices: pricesOf(publicPrice(agent), at.prices),
    extensions: extensionsOf(agent, at.did),
    sign: at.sign,
  }
}

function extensionsOf(agent: Agent, did: string): CardExtension[] {
  const always = [signedParts(did), negotiation]
  return isPaid(agent) ? [...always, ...x402Payments(isAlwaysPaid(agent))] : always
}

/** Returns the URIs of the extensions that the card of the agent with this DID lists. */
export function extensionUrisOf(agent: Agent, did: string): string[] {
  return [did, ...extensionsOf(agent, did).map(({ uri }) => uri)]
}

/**
 * `agent/getAuthenticatedExtendedCard` returns the public card with the author's additions.
 * A card with the address of a gateway is not signed, because the caller could have chosen that address; the gateway signs it.
 * @throws ParleyError AuthenticatedExtendedCardNotConfigured when the author defined none
 */
export const getExtendedCard: Run<'getExtendedCard'> = async (services, { baseUrl }) => {
  const { agent, did, signCard } = services
  const { extendedCard } = agent
  if (extendedCard === undefined) throw new ParleyError('AuthenticatedExtendedCardNotConfigured')
  const { skills, ...more } = extendedCard
  const { description = agent.description } = extendedCard
  const extended = { ...agent, description, skills: [...agent.skills, ...(skills ?? [])] }
  const url = baseUrl()
  const sign = url === services.baseUrl() ? signCard : undefined
  return { result: { ...agentCard(extended, { did, url, sign }), more } }
}

export function documentationPath(skill: Skill): string {
  return `/agent/skills/${encodeURIComponent(skill.id)}/documentation`
}

function cardSkill(skill: Skill, prices: PriceDisplay | undefined): CardSkill {
  return {
    ...skill,
    documentationPath: documentationPath(skill),
    inputSchema: inputSchemaOf(skill),
    prices: pricesOf(skill.executionCost, prices),
  }
}

function pricesOf(
  prices: readonly Price[] | undefined,
  shown: PriceDisplay | undefined,
): ShownPrices | undefined {
  if (prices === undefined) return undefined
  return { ways: shown?.acceptedTerms(prices) ?? prices, sandbox: shown?.sandbox ?? false }
}
