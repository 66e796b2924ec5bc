import { z } from 'zod'
import { jsonObject } from './fields.ts'

/** The answers about skills and the agent cards (spec/discovery.md#skills). */

const texts = z.array(z.string())

const required = {
  id: z.string(),
  name: z.string(),
  description: z.string(),
  tags: texts,
  input_modes: texts,
  input_schema: jsonObject.optional().describe('The JSON Schema of structured input'),
  output_modes: texts,
}

const summary = {
  ...required,
  version: z.string(),
  examples: texts,
  documentation_path: z.string(),
  performance: z.object({ avg_processing_time_ms: z.number().nullable() }),
  allowed_tools: texts,
  assessment: z.object({ keywords: texts, specializations: texts, anti_patterns: texts }),
}

/** The skills of an agent. */
export const skillListAnswer = z.object({ skills: z.array(z.object(summary)), total: z.int() })

export const skillAnswer = z.object({
  ...summary,
  capabilities_detail: jsonObject,
  has_documentation: z.boolean(),
})

/** A skill as its agent listed it. The gateway requires a few fields only. */
const listed = { ...required, agent: z.string().describe('The slug of the agent') }

/** The skills of all agents of a gateway. */
export const gatewaySkillListAnswer = z.object({ skills: z.array(z.looseObject(listed)), total: z.int() })

export const gatewaySkillAnswer = z.looseObject({ ...listed, has_documentation: z.boolean() })

export const cardVersionText = 'The version of A2A is that of the path or of the header A2A-Version.'

/** An agent card of any dialect. */
export const cardAnswer = z
  .looseObject({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    capabilities: jsonObject,
    skills: z.array(
      z.looseObject({ id: z.string(), name: z.string(), description: z.string(), tags: texts }),
    ),
    defaultInputModes: texts,
    defaultOutputModes: texts,
  })
  .meta({ id: 'AgentCard' })
