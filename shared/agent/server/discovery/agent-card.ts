import { agentId } from '@parley/kit/did/did'
import type { Price } from '@parley/wire/model/price'
import type { Agent, Skill } from '../../author/agent.ts'
import { shownPrice } from '../../author/price-of.ts'
import { priceOut } from './price-out.ts'

/** The public agent card, in camelCase (spec/discovery.md#agent-card). */
export function agentCard(agent: Agent, at: { did: string; url: string; prices?: PricesShown | undefined }) {
  const id = agentId(at.did)
  const cost = shownPrice(agent)
  return {
    id,
    did: at.did,
    name: agent.name,
    description: agent.description,
    url: at.url,
    version: agent.version,
    protocolVersion: '1.0.0',
    kind: 'agent',
    author: agent.author,
    capabilities: {
      streaming: agent.capabilities.streaming,
      pushNotifications: agent.capabilities.pushNotifications,
      stateTransitionHistory: true,
      extensions: [
        {
          uri: at.did,
          description: 'The DID by which this agent is known',
          required: false,
          params: { author: agent.author, agent_name: agent.name, agent_id: id },
        },
      ],
    },
    skills: agent.skills.map((skill) => cardSkill(skill, at.prices)),
    defaultInputModes: unique(agent.skills.flatMap((skill) => skill.inputModes)),
    defaultOutputModes: unique(agent.skills.flatMap((skill) => skill.outputModes)),
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'OAuth 2.0 access token' } },
    security: [{ bearer: ['agent:read', 'agent:write'] }],
    ...(cost !== undefined && { executionCost: costOut(cost, at.prices) }),
  }
}

export function documentationPath(skill: Skill): string {
  return `/agent/skills/${encodeURIComponent(skill.id)}/documentation`
}

/** How prices are shown: in the sandbox as test money. */
export interface PricesShown {
  sandbox: boolean
  asked(prices: readonly Price[]): Price[]
}

function costOut(prices: readonly Price[], shown: PricesShown | undefined) {
  return priceOut(shown?.asked(prices) ?? prices, shown?.sandbox ?? false)
}

function cardSkill(skill: Skill, prices: PricesShown | undefined) {
  const { id, name, description, tags, version, inputModes, outputModes } = skill
  return {
    id,
    name,
    description,
    tags,
    version,
    inputModes,
    outputModes,
    documentationPath: documentationPath(skill),
    ...(skill.executionCost !== undefined && { executionCost: costOut(skill.executionCost, prices) }),
  }
}

function unique(values: string[]): string[] {
  return [...new Set(values)]
}
