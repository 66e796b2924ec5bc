import { agentId } from '@parley/kit/did/did'
import type { AgentCard, CardSkill, ShownPrices } from '@parley/wire/model/card'
import type { Price } from '@parley/wire/model/price'
import type { Agent, Skill } from '../../author/agent.ts'
import { publicPrice } from '../../author/price-of.ts'

/** How prices are shown: in the sandbox as test money. */
export interface PricesShown {
  sandbox: boolean
  asked(prices: readonly Price[]): Price[]
}

/** The public card of an agent (spec/discovery.md). */
export function agentCard(
  agent: Agent,
  at: { did: string; url: string; prices?: PricesShown | undefined },
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
    skills: agent.skills.map((skill) => cardSkill(skill, at.prices)),
    prices: pricesOf(publicPrice(agent), at.prices),
  }
}

export function documentationPath(skill: Skill): string {
  return `/agent/skills/${encodeURIComponent(skill.id)}/documentation`
}

function cardSkill(skill: Skill, prices: PricesShown | undefined): CardSkill {
  return {
    ...skill,
    documentationPath: documentationPath(skill),
    prices: pricesOf(skill.executionCost, prices),
  }
}

function pricesOf(
  prices: readonly Price[] | undefined,
  shown: PricesShown | undefined,
): ShownPrices | undefined {
  if (prices === undefined) return undefined
  return { ways: shown?.asked(prices) ?? prices, sandbox: shown?.sandbox ?? false }
}
