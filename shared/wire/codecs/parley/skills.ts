import { z } from 'zod'
import { keptInputSchema } from '../../model/input-schema.ts'
import { isJsonObject } from '../../model/json-text.ts'
import type { JsonObject, JsonValue } from '../../model/task.ts'

/** A skill as its agent lists it, with the facts used in negotiation. */
export interface SkillListing {
  id: string
  name: string
  description: string
  version: string
  tags: readonly string[]
  inputModes: readonly string[]
  outputModes: readonly string[]
  examples: readonly string[]
  documentationPath: string
  performance: { avgProcessingTimeMs?: number | undefined }
  allowedTools: readonly string[]
  assessment: {
    keywords: readonly string[]
    specializations: readonly string[]
    antiPatterns: readonly string[]
  }
  /** The JSON Schema of the data parts that a message for the skill may have. */
  inputSchema?: JsonObject | undefined
}

/** Writes a skill for the list of `GET /agent/skills` (spec/discovery.md#skills). */
export function skillSummaryOut(skill: SkillListing) {
  return {
    id: skill.id,
    name: skill.name,
    description: skill.description,
    version: skill.version,
    tags: skill.tags,
    input_modes: skill.inputModes,
    output_modes: skill.outputModes,
    examples: skill.examples,
    documentation_path: skill.documentationPath,
    performance: { avg_processing_time_ms: skill.performance.avgProcessingTimeMs ?? null },
    allowed_tools: skill.allowedTools,
    assessment: {
      keywords: skill.assessment.keywords,
      specializations: skill.assessment.specializations,
      anti_patterns: skill.assessment.antiPatterns,
    },
    input_schema: skill.inputSchema,
  }
}

/** Writes all details of a skill, the answer to `GET /agent/skills/{id or name}`. */
export function skillDetailOut(
  skill: SkillListing & { capabilitiesDetail: Record<string, unknown>; documentation?: string | undefined },
) {
  return {
    ...skillSummaryOut(skill),
    capabilities_detail: skill.capabilitiesDetail,
    has_documentation: skill.documentation !== undefined,
  }
}

/**
 * A skill as its agent listed it, spelled as in `GET /agent/skills`. A registry stores it and passes it on. The field
 * `input_schema` may have the JSON Schema of the structured input (`keptInputSchema`).
 */
export interface ListedSkill extends JsonObject {
  id: string
  name: string
  description: string
  tags: string[]
  input_modes: string[]
  output_modes: string[]
}

const line = z.string().max(512)
const words = z.array(line).max(256)

/** A skill from a card (camelCase) or from `GET /agent/skills` (snake_case). */
const listed = z.looseObject({
  id: line.min(1),
  name: line.optional(),
  description: z.string().max(16_384).default(''),
  tags: words.default([]),
  input_modes: words.optional(),
  inputModes: words.optional(),
  output_modes: words.optional(),
  outputModes: words.optional(),
  documentationPath: z.custom<JsonValue>().optional(),
  input_schema: z.unknown().optional(),
  inputSchema: z.unknown().optional(),
})

/** Leaves out items that are not skills, so that one malformed item does not exclude the whole agent. */
export function readListedSkills(list: unknown): ListedSkill[] {
  if (!Array.isArray(list)) return []
  return list.slice(0, 1000).flatMap((item) => {
    const parsed = listed.safeParse(item)
    if (!parsed.success) return []
    const { input_modes, inputModes, output_modes, outputModes, documentationPath, ...others } = parsed.data
    const { input_schema, inputSchema, ...rest } = others
    const schema = keptInputSchema(input_schema ?? inputSchema)
    return {
      ...rest,
      ...(schema !== undefined && { input_schema: schema }),
      ...(documentationPath !== undefined && { documentation_path: documentationPath }),
      id: rest.id,
      name: rest.name ?? rest.id,
      description: rest.description,
      tags: rest.tags,
      input_modes: input_modes ?? inputModes ?? [],
      output_modes: output_modes ?? outputModes ?? [],
    }
  })
}

/** The tool of an MCP server that is a skill. */
export interface SkillTool {
  name: string
  isRepeatable: boolean
  isDestructive: boolean
}

/** Writes the skill of a tool, as an agent lists it. */
export function toolSkillOut(
  skill: Pick<SkillListing, 'id' | 'name' | 'description'> & { tags: string[]; inputSchema: JsonObject },
  { tool, keywords }: { tool: SkillTool; keywords: string[] },
) {
  const { id, name, description, tags, inputSchema } = skill
  return {
    id,
    name,
    description,
    tags,
    input_modes: ['application/json', 'text/plain'],
    output_modes: ['text/plain', 'application/json'],
    input_schema: inputSchema,
    tool: { name: tool.name, is_repeatable: tool.isRepeatable, is_destructive: tool.isDestructive },
    assessment: { keywords, specializations: [], anti_patterns: [] },
  }
}

const skillTool = z
  .object({ name: z.string(), is_repeatable: z.boolean(), is_destructive: z.boolean() })
  .transform(({ name, is_repeatable: isRepeatable, is_destructive: isDestructive }): SkillTool => {
    return { name, isRepeatable, isDestructive }
  })

/** Returns the tool of an MCP server that is this skill, and the schema of its data. */
export function toolOf(skill: ListedSkill): { tool?: SkillTool; inputSchema?: JsonObject } {
  const tool = skillTool.safeParse(skill['tool']).data
  const { input_schema: inputSchema } = skill
  return { ...(tool !== undefined && { tool }), ...(isJsonObject(inputSchema) && { inputSchema }) }
}

/** Returns the fields of a skill that every card has. */
export function cardSkillOf(skill: ListedSkill) {
  const { id, name, description, tags, input_modes: inputModes, output_modes: outputModes } = skill
  return { id, name, description, tags, inputModes, outputModes }
}

/** Returns the skill with its documentation path placed below the agent's path. */
export function withDocumentationBelow(skill: ListedSkill, prefix: string): ListedSkill {
  const path = skill['documentation_path']
  if (typeof path !== 'string') return { ...skill }
  return { ...skill, documentation_path: `${prefix}/${path.replace(/^\/+/, '')}` }
}

/** Writes all details of a listed skill, a gateway's answer to `GET /agent/skills/{id or name}`. */
export function listedSkillDetail<T extends ListedSkill>(skill: T) {
  return { ...skill, has_documentation: typeof skill['documentation_path'] === 'string' }
}

const texts = z.array(z.string().max(1000)).max(500).catch([])
const noAssessment = { keywords: [], specializations: [], anti_patterns: [] }
const facts = z.object({
  examples: texts,
  allowed_tools: texts,
  performance: z.object({ avg_processing_time_ms: z.number().min(0).nullish() }).catch({}),
  assessment: z.object({ keywords: texts, specializations: texts, anti_patterns: texts }).catch(noAssessment),
})

/** The facts that negotiation uses and a registry does not require. Values of any other type count as absent. */
export function skillFacts(skill: ListedSkill) {
  const { examples, allowed_tools, performance, assessment } = facts.parse(skill)
  return {
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
