import type { Facts, Offer, OfferedSkill } from '@parley/negotiation/score/offer'
import { amount } from '@parley/negotiation/score/request'
import { z } from 'zod'
import type { AgentEntry, AgentSkill } from '../../registry/entry.ts'

const texts = z.array(z.string().max(1000)).max(500).catch([])
const noAssessment = { keywords: [], specializations: [], anti_patterns: [] }

/** What agents may say of a skill beyond what the registry requires; anything odd counts as not said. */
const more = z.object({
  examples: texts,
  allowed_tools: texts,
  performance: z.object({ avg_processing_time_ms: z.number().min(0).nullish() }).catch({}),
  assessment: z.object({ keywords: texts, specializations: texts, anti_patterns: texts }).catch(noAssessment),
})
const modes = z.array(z.string()).min(1).catch(['text/plain'])
const price = z.object({ amount })

/** What an agent of the registry brings to a negotiation: the same that it would say for itself. */
export function offerOf(entry: AgentEntry): Offer {
  const { name, description, skills, card } = entry
  const inputs = modes.parse(card['defaultInputModes'])
  const outputs = modes.parse(card['defaultOutputModes'])
  return {
    name,
    description,
    skills: skills.map((skill) => skillOf(skill, inputs, outputs)),
    ...factsOf(entry),
  }
}

/** What changes while it works. */
export function factsOf({ load, measurements, card }: AgentEntry): Facts {
  const cost = price.safeParse(card['executionCost']).data
  return {
    queueDepth: load.queueDepth ?? 0,
    ...(load.activeTasks !== undefined && { activeTasks: load.activeTasks }),
    ...(measurements !== undefined && {
      measured: {
        samples: measurements.samples,
        successShare: measurements.successShare,
        ...(measurements.latencyP50Ms !== undefined && { latencyMs: measurements.latencyP50Ms }),
      },
    }),
    ...(cost !== undefined && { price: { amount: cost.amount } }),
  }
}

function skillOf(skill: AgentSkill, inputs: string[], outputs: string[]): OfferedSkill {
  const { examples, allowed_tools, performance, assessment } = more.parse(skill)
  return {
    id: skill.id,
    name: skill.name,
    description: skill.description,
    tags: skill.tags,
    inputModes: skill.input_modes.length === 0 ? inputs : skill.input_modes,
    outputModes: skill.output_modes.length === 0 ? outputs : skill.output_modes,
    examples,
    allowedTools: allowed_tools,
    performance: { avgProcessingTimeMs: performance.avg_processing_time_ms ?? undefined },
    assessment: {
      keywords: assessment.keywords,
      specializations: assessment.specializations,
      antiPatterns: assessment.anti_patterns,
    },
  }
}
